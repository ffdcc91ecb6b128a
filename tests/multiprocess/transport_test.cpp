// Real processes: segments passed and mapped, owners killed, calls and messages through memory of two address spaces.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/doorbell_sleep.h"
#include "support/raw_client.h"
#include "transport/fd_server.h"
#include "transport/rank_area.h"
#include "transport/segment.h"
#include "transport/shm.h"

namespace tutti {
namespace {

using testing::key_of;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t patient_ns = 60'000 * ms;
const std::function<bool()> never = [] { return false; };

/// A forked process; its exit status is what `body` returns.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(body());
  }
  ~Child() {
    if (pid_ > 0) kill();
  }
  int pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  bool running() {
    int status = 0;
    if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) == 0) return pid_ > 0;
    pid_ = -1;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return false;
  }
  /// Of a child that has ended.
  int status() const { return status_; }

 private:
  int pid_;
  int status_ = -1;
};

/// One turn of a service thread, in the thread of the test: a process that forks has no others.
void serve_turn(FdServer& server) {
  std::vector<PollItem> items;
  (void)server.poll_set(items);
  real_system().poll(items, 5 * ms);
  EXPECT_TRUE(server.advance());
}

class TwoProcesses : public ::testing::Test {
 protected:
  void open(std::size_t bytes) {
    auto at = table_.allocate(bytes, true);
    ASSERT_TRUE(at) << at.error().text();
    memory_ = *at;
    segment_ = table_.find(memory_, bytes)->name;
    auto server = FdServer::open(table_, key_of(1));
    ASSERT_TRUE(server) << server.error().text();
    server_ = *std::move(server);
  }
  int served(Child& child) {
    while (child.running()) serve_turn(*server_);
    return child.status();
  }

  SegmentTable table_;
  std::byte* memory_ = nullptr;
  SegmentName segment_;
  std::unique_ptr<FdServer> server_;
};

TEST_F(TwoProcesses, WhatAPeerWritesTheOwnerSees) {
  constexpr std::size_t bytes = 3 << 20;
  open(bytes);
  const int owner = ::getpid();
  Child child([&] {
    SegmentCache cache;
    int pid = 0;
    const auto fetch = [&](std::uint64_t, SegmentName name) -> Result<SegmentTable::Export> {
      auto fetched = fetch_segment(server_->name(), key_of(1), name, patient_ns, never);
      if (!fetched) return std::move(fetched).error();
      pid = fetched->owner.pid;
      return std::move(fetched->segment);
    };
    const auto mapping = cache.map(1, segment_, bytes, fetch);
    if (!mapping) return 1;
    if (pid != owner) return 2;
    if ((*mapping)->data() == memory_) return 3;
    for (std::size_t i = 0; i < bytes; ++i) (*mapping)->data()[i] = static_cast<std::byte>(i * 11);
    return 0;
  });
  ASSERT_EQ(served(child), 0);
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory_[i], static_cast<std::byte>(i * 11));
}

TEST_F(TwoProcesses, AWrongKeyIsRefused) {
  open(4096);
  Child child([&] {
    const auto fetched = fetch_segment(server_->name(), key_of(2), segment_, patient_ns, never);
    return !fetched && fetched.error().code == Code::remote ? 0 : 1;
  });
  EXPECT_EQ(served(child), 0);
}

TEST_F(TwoProcesses, AGoodClientSucceedsWhileOthersMakeNoise) {
  open(4096);
  std::vector<std::unique_ptr<Child>> attackers;
  for (unsigned seed = 0; seed < 2; ++seed)
    attackers.push_back(std::make_unique<Child>([&, seed]() -> int {
      std::mt19937 random(seed);
      std::vector<UniqueFd> held;
      for (;;) {
        held.push_back(testing::raw_connect(server_->name()));
        if (held.back() && random() % 2 == 0)
          (void)testing::raw_send(held.back(), std::string(1 + random() % 300, static_cast<char>(random())));
        if (held.size() == 150) held.clear();
      }
    }));
  for (int i = 0; i < 10; ++i) {
    Child good([&] { return fetch_segment(server_->name(), key_of(1), segment_, patient_ns, never) ? 0 : 1; });
    ASSERT_EQ(served(good), 0);
  }
  for (auto& attacker : attackers) EXPECT_TRUE(attacker->running());
}

// ---- The owner is killed ----

struct Told {
  char server[64];
  SegmentName segment;
};

/// Owns a segment, tells its name through `pipe`, serves until it is killed.
int own(int pipe, std::size_t bytes) {
  SegmentTable table;
  auto at = table.allocate(bytes, true);
  if (!at) return 1;
  for (std::size_t i = 0; i < bytes; ++i) (*at)[i] = static_cast<std::byte>(i * 5);
  auto server = FdServer::open(table, key_of(1));
  if (!server) return 2;
  Told told{};
  (*server)->name().copy(told.server, sizeof told.server - 1);
  told.segment = table.find(*at, 1)->name;
  if (::write(pipe, &told, sizeof told) != sizeof told) return 3;
  for (;;) serve_turn(**server);
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) names.insert(entry.path().filename());
  return names;
}

bool socket_exists(const std::string& name) {
  std::ifstream file("/proc/net/unix");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.find(name) != std::string::npos;
}

TEST(OwnerKilled, LeavesMappingsReadableAndNoNameBehind) {
  constexpr std::size_t bytes = 64 * 1024;
  const auto shm_before = files_in("/dev/shm");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  Child owner([&] { return own(writing.get(), bytes); });
  Told told;
  ASSERT_EQ(::read(reading.get(), &told, sizeof told), static_cast<ssize_t>(sizeof told));

  auto fetched = fetch_segment(told.server, key_of(1), told.segment, patient_ns, never);
  ASSERT_TRUE(fetched) << fetched.error().text();
  EXPECT_EQ(fetched->owner.pid, owner.pid());
  auto mapping = Mapping::shared(fetched->segment.fd.get(), bytes);
  ASSERT_TRUE(mapping);
  EXPECT_TRUE(socket_exists(told.server));

  owner.kill();
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(mapping->data()[i], static_cast<std::byte>(i * 5));
  const auto again = fetch_segment(told.server, key_of(1), told.segment, patient_ns, never);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::remote);
  EXPECT_FALSE(socket_exists(told.server));
  for (const auto& name : files_in("/dev/shm"))
    EXPECT_TRUE(shm_before.contains(name) || !name.starts_with("tutti")) << name;
}

// ---- Calls and messages between two address spaces ----

/// Rank 1 is a child that inherits the areas and maps them again, so that nothing depends on equal addresses.
class RanksInProcesses : public ::testing::Test {
 protected:
  RanksInProcesses() {
    for (int rank = 0; rank < 2; ++rank) {
      auto at = table_.allocate(RankArea::bytes(shape_), false);
      EXPECT_TRUE(at);
      bases_.push_back(*at);
      RankArea(*at, shape_).format();
    }
  }
  /// The areas as rank 1 sees them.
  std::vector<RankArea> map_again() {
    std::vector<RankArea> areas;
    for (std::byte* const base : bases_) {
      auto mapping = Mapping::shared(table_.share(table_.find(base, 1)->name)->fd.get(), RankArea::bytes(shape_));
      if (!mapping) return {};
      areas.emplace_back(mapping->data(), shape_);
      mappings_.push_back(*std::move(mapping));
    }
    return areas;
  }
  std::vector<RankArea> areas() const { return {RankArea(bases_[0], shape_), RankArea(bases_[1], shape_)}; }

  const AreaShape shape_{.ranks = 2, .channels = 1, .slots = 2, .slot_bytes = 5000, .payload_bytes = 512};
  SegmentTable table_;
  std::vector<std::byte*> bases_;
  std::vector<Mapping> mappings_;
};

template <class Ready>
void await(const std::vector<RankArea>& areas, int rank, Ready&& ready) {
  while (!ready()) testing::doorbell_sleep(real_system(), areas[rank].header().doorbell, ready);
}

constexpr std::uint64_t calls = 3000;

std::size_t payload_of(std::uint64_t call) {
  return call * 37 % 513;
}

/// Number of calls that went wrong.
int make_calls(const std::vector<RankArea>& areas, int rank) {
  CallDescriptors lines({areas[0].call_descriptors(), areas[1].call_descriptors()}, rank, 512);
  int wrong = 0;
  for (std::uint64_t call = 1; call <= calls; ++call) {
    const auto entered = [&] {
      const auto may = lines.may_enter(call, DescriptorRings::is_compact(payload_of(call)));
      return !may || *may;
    };
    await(areas, rank, entered);
    CallDescriptor& line = lines.begin(call);
    line.signature = {.collective = 1, .count = call};
    const std::size_t bytes = payload_of(call);
    std::memset(lines.payload(call, bytes), static_cast<int>(call + rank), bytes);
    lines.publish(line, call);
    areas[1 - rank].header().doorbell.ring(real_system(), true);

    if (call % 3 == 0) continue;  // nobody reads these: both run ahead
    const CallDescriptor* theirs = nullptr;
    await(areas, rank, [&] {
      const auto open = lines.open(1 - rank, call);
      if (!open) ++wrong;
      if (open) theirs = *open;
      return !open || theirs != nullptr;
    });
    if (theirs == nullptr) return wrong;
    for (std::size_t i = 0; i < bytes; ++i)
      if (lines.payload(1 - rank, call, bytes)[i] != static_cast<std::byte>(call + 1 - rank)) return wrong + 1;
  }
  return wrong;
}

TEST_F(RanksInProcesses, ReadEachOthersCalls) {
  Child child([&] {
    const auto mine = map_again();
    return mine.size() == 2 ? std::min(make_calls(mine, 1), 100) : 200;
  });
  EXPECT_EQ(make_calls(areas(), 0), 0);
  while (child.running()) real_system().yield();
  EXPECT_EQ(child.status(), 0);
}

constexpr int messages = 2000;

std::size_t length_of(int message) {
  return static_cast<std::size_t>(message) * 997 % 5001;
}

int send_all(const std::vector<RankArea>& areas) {
  ShmSender sender(real_system(), areas[1], 1, areas[0], 0, 0, true);
  for (int message = 0; message < messages; ++message) {
    std::span<std::byte> slot;
    bool failed = false;
    await(areas, 1, [&] {
      auto acquired = sender.acquire();
      failed = !acquired;
      if (acquired) slot = *acquired;
      return failed || !slot.empty();
    });
    if (failed) return 1;
    std::memset(slot.data(), message, length_of(message));
    if (!sender.commit(length_of(message))) return 2;
  }
  await(areas, 1, [&] { return *sender.settled() != Settled::not_yet; });
  return 0;
}

TEST_F(RanksInProcesses, PassMessages) {
  Child child([&] {
    const auto mine = map_again();
    return mine.size() == 2 ? send_all(mine) : 200;
  });
  const auto mine = areas();
  ShmReceiver receiver(real_system(), mine[0], 0, mine[1], 1, 0, true);
  for (int message = 0; message < messages; ++message) {
    std::span<const std::byte> got;
    await(mine, 0, [&] {
      auto peeked = receiver.peek(length_of(message));
      if (peeked) got = *peeked;
      return !peeked || got.data() != nullptr;
    });
    ASSERT_EQ(got.size(), length_of(message));
    for (const std::byte b : got) ASSERT_EQ(b, static_cast<std::byte>(message));
    ASSERT_TRUE(receiver.release());
  }
  while (child.running()) real_system().yield();
  EXPECT_EQ(child.status(), 0);
}

}  // namespace
}  // namespace tutti
