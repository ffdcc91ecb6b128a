// The operating system's clock, sleep and sockets keep what base/system.h promises.
#include "base/system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/descriptors.h"
#include "base/own_sockets.h"
#include "support/descriptors.h"

namespace tutti {
namespace {

constexpr std::int64_t s = 1'000'000'000;
System& os() {
  return real_system();
}

bool await(const Socket& socket, bool write = false) {
  PollItem item{.handle = socket.handle(), .want_read = !write, .want_write = write};
  os().poll({&item, 1}, 60 * s);
  return item.ready;
}

/// A connected pair on `host`.
struct Pair {
  explicit Pair(const std::string& host) {
    auto listening = os().listen({.host = host});
    if (!listening) return;
    listener = *std::move(listening);
    caller = *os().connect(*os().address(listener));
    EXPECT_TRUE(await(listener));
    callee = *os().accept(listener);
    EXPECT_TRUE(await(caller, true));
  }
  Socket listener, caller, callee;
};

TEST(System, ClockDoesNotGoBack) {
  const std::int64_t before = os().now_ns();
  os().yield();
  EXPECT_GE(os().now_ns(), before);
}

TEST(System, WaitReturnsWhenTheWordDiffersOrTimeIsUp) {
  std::atomic<std::uint32_t> word{1};
  os().wait(word, 0, -1);
  os().wait(word, 1, 0);
  const std::int64_t before = os().now_ns();
  os().wait(word, 1, s / 1000);
  EXPECT_GE(os().now_ns(), before);
}

TEST(System, WakeEndsAWait) {
  std::atomic<std::uint32_t> word{0};
  std::jthread other([&] {
    word.store(1);
    os().wake(word);
  });
  while (word.load() == 0) os().wait(word, 0, -1);
}

TEST(System, WakeReachesAnotherProcess) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& word = *new (memory) std::atomic<std::uint32_t>{0};
  const pid_t child = ::fork();
  if (child == 0) {
    word.store(1);
    os().wake(word);
    ::_exit(0);
  }
  while (word.load() == 0) os().wait(word, 0, -1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(memory, 4096);
}

TEST(System, PollEndsWhenTimeIsUp) {
  os().poll({}, 0);
  os().poll({}, s / 1000);
  auto listener = os().listen({.host = "127.0.0.1"});
  ASSERT_TRUE(listener);
  PollItem item{.handle = listener->handle(), .want_read = true, .ready = true};
  os().poll({&item, 1}, 0);
  EXPECT_FALSE(item.ready);
}

TEST(System, MovesBytesBothWays) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    Pair pair(host);
    if (host == "::1" && !pair.listener) GTEST_SKIP() << "this machine has no IPv6";
    EXPECT_EQ(*os().address(pair.caller), *os().peer_address(pair.callee));
    EXPECT_EQ(os().address(pair.callee)->host, host);
    for (auto [from, to] : {std::pair{&pair.caller, &pair.callee}, std::pair{&pair.callee, &pair.caller}}) {
      const std::array out{std::byte{1}, std::byte{2}, std::byte{3}};
      EXPECT_EQ(os().send(*from, out)->bytes, 3u);
      ASSERT_TRUE(await(*to));
      std::array<std::byte, 8> in{};
      EXPECT_EQ(os().receive(*to, in)->bytes, 3u);
      EXPECT_EQ(in[2], std::byte{3});
      const auto nothing = os().receive(*to, in);
      EXPECT_TRUE(nothing && nothing->bytes == 0 && !nothing->closed);
    }
  }
}

TEST(System, AFullWireTakesNothingAndLosesNothing) {
  Pair pair("127.0.0.1");
  const std::vector<std::byte> piece(1 << 20, std::byte{42});
  std::size_t sent = 0;
  while (true) {
    const auto moved = os().send(pair.caller, piece);
    ASSERT_TRUE(moved);
    if (moved->bytes == 0) break;
    sent += moved->bytes;
  }
  pair.caller = Socket();
  std::vector<std::byte> in(1 << 20);
  std::size_t got = 0;
  while (true) {
    ASSERT_TRUE(await(pair.callee));
    const auto moved = os().receive(pair.callee, in);
    ASSERT_TRUE(moved);
    if (moved->closed) break;
    got += moved->bytes;
  }
  EXPECT_EQ(got, sent);
}

TEST(System, AnEmptyAcceptIsNoError) {
  auto listener = os().listen({.host = "127.0.0.1"});
  const auto nobody = os().accept(*listener);
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(*nobody);
}

/// Either at once or at the first send, and never as a silent close.
TEST(System, ARefusedConnectSaysSo) {
  const SocketAddress nobody = *os().address(*os().listen({.host = "127.0.0.1"}));
  auto socket = os().connect(nobody);
  int problem = socket ? 0 : socket.error().sys_errno;
  while (problem == 0) {
    const auto moved = os().send(*socket, std::as_bytes(std::span("x")));
    problem = moved ? 0 : moved.error().sys_errno;
    ASSERT_FALSE(moved && moved->closed);
    if (problem == 0) {
      EXPECT_TRUE(await(*socket, true));
    }
  }
  EXPECT_EQ(problem, ECONNREFUSED);
}

TEST(System, SendingToNobodyKillsNobody) {
  Pair pair("127.0.0.1");
  pair.callee = Socket();
  while (true) {
    const auto moved = os().send(pair.caller, std::as_bytes(std::span("x")));
    if (!moved || moved->closed) break;
  }
}

TEST(System, RefusesWhatIsNoAddress) {
  EXPECT_EQ(os().listen({.host = "no address"}).error().code, Code::invalid_argument);
  EXPECT_EQ(os().connect({.host = "localhost.example", .port = 1}).error().code, Code::invalid_argument);
  auto taken = os().listen({.host = "127.0.0.1"});
  EXPECT_EQ(os().listen(*os().address(*taken)).error().sys_errno, EADDRINUSE);
}

TEST(System, SocketsAreClosedOnce) {
  const auto before = testing::open_descriptors();
  {
    Pair pair("127.0.0.1");
    Socket moved = std::move(pair.caller);
    EXPECT_FALSE(pair.caller);
    pair.callee = std::move(moved);
  }
  EXPECT_EQ(testing::open_descriptors(), before);
}

TEST(OwnSockets, ClosesThoseThatWereAddedAndNotRemoved) {
  const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
  const bool many = raise_descriptor_limit().now > 70'001;
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const int kept = ::dup(pipe_ends[0]), removed = ::dup(pipe_ends[0]);
  const int large = ::fcntl(pipe_ends[0], F_DUPFD, many ? 70'000 : 100);
  ASSERT_GE(large, 0);
  OwnSockets own;
  for (const int fd : {pipe_ends[1], removed, large, -1}) own.add(fd);
  own.remove(removed);
  own.remove(kept);  // never added
  own.close_all();
  EXPECT_FALSE(is_open(pipe_ends[1]));
  EXPECT_FALSE(is_open(large));
  for (const int fd : {pipe_ends[0], kept, removed}) {
    EXPECT_TRUE(is_open(fd));
    ::close(fd);
  }
  own.close_all();  // nothing is closed twice
}

}  // namespace
}  // namespace tutti
