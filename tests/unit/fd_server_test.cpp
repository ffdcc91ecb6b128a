// Who shows the key gets the segment; nobody else gets anything, and nobody else's noise does harm.
#include "transport/fd_server.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/descriptors.h"
#include "support/in_child.h"
#include "support/raw_client.h"

namespace tutti {
namespace {

using testing::key_of;
using testing::open_descriptors;
using testing::raw_connect;
using testing::raw_send;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t patient_ns = 60'000 * ms;
const std::function<bool()> never = [] { return false; };

/// A server and the thread that drives it as the service thread would.
class Serving {
 public:
  Serving() {
    auto at = table_.allocate(8192, true);
    EXPECT_TRUE(at);
    memory_ = *at;
    name_ = table_.find(memory_, 1)->name;
    auto server = FdServer::open(table_, key_of(1));
    EXPECT_TRUE(server) << server.error().text();
    server_ = *std::move(server);
    thread_ = std::thread([this] { drive(); });
  }
  ~Serving() {
    stop_ = true;
    thread_.join();
  }

  const std::string& name() const { return server_->name(); }
  SegmentName segment() const { return name_; }
  std::byte* memory() const { return memory_; }
  SegmentTable& table() { return table_; }
  std::size_t handles_max() const { return handles_max_; }
  /// Nobody is served in between.
  void pause() { turn_.lock(); }
  void go_on() { turn_.unlock(); }
  Result<Fetched> fetch(const ProcessKey& key, SegmentName segment) const {
    return fetch_segment(name(), key, segment, patient_ns, never);
  }

 private:
  void drive() {
    System& system = real_system();
    std::vector<PollItem> items;
    while (!stop_) {
      const std::lock_guard turn(turn_);
      items.clear();
      const std::int64_t next_ns = server_->poll_set(items);
      handles_max_ = std::max(handles_max_.load(), items.size());
      system.poll(items, std::clamp<std::int64_t>(next_ns - system.now_ns(), 0, 20 * ms));
      EXPECT_TRUE(server_->advance());
    }
  }

  SegmentTable table_;
  std::byte* memory_ = nullptr;
  SegmentName name_;
  std::unique_ptr<FdServer> server_;
  std::mutex turn_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> handles_max_ = 0;
  std::thread thread_;
};

TEST(FdServer, GivesTheSegmentToWhoeverShowsTheKey) {
  Serving serving;
  auto fetched = serving.fetch(key_of(1), serving.segment());
  ASSERT_TRUE(fetched) << fetched.error().text();
  EXPECT_EQ(fetched->segment.bytes, 8192u);
  EXPECT_EQ(fetched->owner.pid, ::getpid());
  auto mapping = Mapping::shared(fetched->segment.fd.get(), fetched->segment.bytes);
  ASSERT_TRUE(mapping);
  mapping->data()[17] = std::byte{0x5a};
  EXPECT_EQ(serving.memory()[17], std::byte{0x5a});
}

TEST(FdServer, AWatchersConnectionEndsWithTheProcess) {
  std::optional<Serving> serving(std::in_place);
  ASSERT_FALSE(watch_process(serving->name(), key_of(2), patient_ns, never)) << "a wrong key";
  auto seen = watch_process(serving->name(), key_of(1), patient_ns, never);
  ASSERT_TRUE(seen) << seen.error().text();
  ASSERT_TRUE(seen->connected);
  pollfd item{.fd = seen->connected.get(), .events = POLLIN, .revents = 0};
  // More come and go; this one stays.
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(watch_process(serving->name(), key_of(1), patient_ns, never));
  ASSERT_TRUE(serving->fetch(key_of(1), serving->segment()));
  EXPECT_EQ(::poll(&item, 1, 0), 0);
  serving.reset();
  EXPECT_EQ(::poll(&item, 1, static_cast<int>(patient_ns / ms)), 1);
}

TEST(FdServer, RefusesEveryWrongKey) {
  Serving serving;
  for (std::size_t wrong = 0; wrong < sizeof(ProcessKey); ++wrong) {
    ProcessKey key = key_of(1);
    key[wrong] ^= std::byte{0x10};
    const auto fetched = serving.fetch(key, serving.segment());
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().code, Code::remote);
    EXPECT_NE(fetched.error().what.find("refused"), std::string::npos);
  }
}

/// What a request gets: the status of the reply, and how many descriptors come with it.
struct Got {
  std::optional<FdStatus> status = {};  ///< none: it hangs up without a word
  std::size_t descriptors = 0;
};

Got ask_as_this_user(const std::string& name, const FdRequest& request) {
  const UniqueFd fd = raw_connect(name);
  EXPECT_TRUE(fd);
  (void)raw_send(fd, {reinterpret_cast<const char*>(&request), sizeof request});  // it may have hung up already
  FdReply reply;
  testing::RawMessage message(&reply, sizeof reply, 1);
  ssize_t got = -1;
  // It is a reset first where the server has hung up without having read the request.
  do got = ::recvmsg(fd.get(), message.get(), MSG_CMSG_CLOEXEC);
  while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  Got all;
  if (got == static_cast<ssize_t>(sizeof reply)) all.status = reply.status.checked();
  for (cmsghdr* at = CMSG_FIRSTHDR(message.get()); at != nullptr; at = CMSG_NXTHDR(message.get(), at))
    ++all.descriptors;
  return all;
}

/// Whoever has come by the key as another user gets neither a segment nor word of the process's end.
TEST(FdServer, RefusesAnotherUserWithTheRightKey) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  Serving serving;
  const FdRequest segment{.key = key_of(1), .id = serving.segment().id, .generation = serving.segment().generation};
  const FdRequest watch{.key = key_of(1), .id = FdRequest::watch};
  EXPECT_EQ(ask_as_this_user(serving.name(), segment).descriptors, 1u);
  EXPECT_EQ(ask_as_this_user(serving.name(), watch).status, FdStatus::granted);
  in_child([&] {
    ASSERT_EQ(::setresgid(65534, 65534, 65534), 0);
    ASSERT_EQ(::setresuid(65534, 65534, 65534), 0);
    for (const FdRequest& request : {segment, watch}) {
      const Got got = ask_as_this_user(serving.name(), request);
      EXPECT_EQ(got.status, FdStatus::refused);
      EXPECT_EQ(got.descriptors, 0u);
    }
  });
}

TEST(FdServer, KnowsOnlySegmentsThatLive) {
  Serving serving;
  const SegmentName name = serving.segment();
  for (const SegmentName other : {SegmentName{}, SegmentName{name.id, 1}, SegmentName{name.id + 1, 0}}) {
    const auto fetched = serving.fetch(key_of(1), other);
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().code, Code::remote);
  }
  ASSERT_TRUE(serving.table().move_aside(serving.memory()));
  EXPECT_FALSE(serving.fetch(key_of(1), name));
  EXPECT_TRUE(serving.fetch(key_of(1), {name.id, 1}));
}

TEST(FdServer, HasANameThatNobodyGuessesAndNoFile) {
  SegmentTable table;
  auto one = FdServer::open(table, key_of(1));
  auto two = FdServer::open(table, key_of(1));
  ASSERT_TRUE(one && two);
  EXPECT_NE((*one)->name(), (*two)->name());
  EXPECT_GE((*one)->name().size(), 32u);
  EXPECT_FALSE(std::filesystem::exists((*one)->name()));
}

TEST(FdServer, ServesManyAtOnce) {
  Serving serving;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto fetched = serving.fetch(key_of(1), serving.segment());
        ASSERT_TRUE(fetched) << fetched.error().text();
      }
    });
  for (auto& thread : threads) thread.join();
}

std::string garbage(std::mt19937& random) {
  std::string bytes(1 + random() % 200, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(FdServer, IsUnharmedByGarbage) {
  Serving serving;
  const auto before = open_descriptors();
  std::atomic<bool> stop = false;
  std::thread attacker([&] {
    std::mt19937 random(3);
    while (!stop) {
      const UniqueFd fd = raw_connect(serving.name());
      if (!fd) continue;
      if (random() % 8 == 0) continue;  // hangs up at once
      (void)raw_send(fd, garbage(random));
      FdRequest request{.magic = random() % 2 == 0 ? FdRequest::magic_value : random(), .key = key_of(random())};
      (void)raw_send(fd, {reinterpret_cast<const char*>(&request), sizeof request});
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(serving.fetch(key_of(1), serving.segment()));
  stop = true;
  attacker.join();
  while (open_descriptors() > before) std::this_thread::yield();  // the server drops what the attacker left
}

TEST(FdServer, HoldsFewSilentClientsAndNotForLong) {
  Serving serving;
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(raw_connect(serving.name()));
    ASSERT_TRUE(silent.back());
  }
  EXPECT_TRUE(serving.fetch(key_of(1), serving.segment()));
  EXPECT_LE(serving.handles_max(), 65u);  // the listener and 64
  for (const auto& fd : silent) {
    char byte;
    EXPECT_EQ(::recv(fd.get(), &byte, 1, 0), 0) << "each is dropped, without an answer";
  }
}

TEST(FdServer, DropsDescriptorsThatClientsSend) {
  Serving serving;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  {
    const UniqueFd fd = raw_connect(serving.name());
    FdRequest request{.key = key_of(2)};
    const int sent = writing.get();
    ASSERT_TRUE(raw_send(fd, {reinterpret_cast<const char*>(&request), sizeof request}, {&sent, 1}));
    FdReply reply;
    ASSERT_EQ(::recv(fd.get(), &reply, sizeof reply, 0), static_cast<ssize_t>(sizeof reply));
    EXPECT_EQ(reply.status, FdStatus::refused);
  }
  writing.reset();
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "somebody still holds the other end";
}

/// As many descriptors as are open now, and no more, while it lives.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit now{.rlim_cur = static_cast<rlim_t>(lowest.get()), .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// Peers need not wait for their own limit to learn it.
TEST(FdServer, SaysThatItHasNoDescriptorLeft) {
  Serving serving;
  const auto ask = [&](std::uint32_t id) {
    UniqueFd fd = raw_connect(serving.name());
    const FdRequest request{.key = key_of(1), .id = id};
    (void)raw_send(fd, {reinterpret_cast<const char*>(&request), sizeof request});
    return fd;
  };
  for (const std::uint32_t id : {serving.segment().id, FdRequest::watch}) {
    serving.pause();
    std::vector<UniqueFd> peers;
    for (int i = 0; i < 5; ++i) peers.push_back(ask(id));
    {
      const NoMoreDescriptors limit;
      serving.go_on();
      for (const UniqueFd& peer : peers) {
        FdReply reply{.status = FdStatus::granted};
        EXPECT_EQ(::recv(peer.get(), &reply, sizeof reply, 0), static_cast<ssize_t>(sizeof reply));
        EXPECT_EQ(reply.status, FdStatus::no_descriptor);
      }
    }
  }
  EXPECT_TRUE(serving.fetch(key_of(1), serving.segment())) << "and serves again when it has some";
}

}  // namespace
}  // namespace tutti
