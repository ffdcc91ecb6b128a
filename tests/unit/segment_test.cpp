// Segments are where they say, fresh after a move, refused beyond limits, and mapped once by whoever wants them.
#include "transport/segment.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "support/descriptors.h"
#include "support/forbidden_calls.h"

namespace tutti {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = 2 << 20;

std::byte* allocate(SegmentTable& table, std::size_t bytes, bool touch = true) {
  auto at = table.allocate(bytes, touch);
  EXPECT_TRUE(at) << at.error().text();
  return at ? *at : nullptr;
}

SegmentCache::Fetch from(const SegmentTable& table) {
  return [&table](std::uint64_t, SegmentName name) { return table.share(name); };
}

/// A lower limit while it lives.
class Limit {
 public:
  Limit(__rlimit_resource kind, rlim_t value) : kind_(kind) {
    EXPECT_EQ(::getrlimit(kind, &before_), 0);
    const rlimit lower{.rlim_cur = value, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(kind, &lower), 0);
  }
  ~Limit() { ::setrlimit(kind_, &before_); }

 private:
  __rlimit_resource kind_;
  rlimit before_{};
};

std::size_t pages_held(const SegmentTable& table, const void* at) {
  auto shared = table.share(table.find(at, 1)->name);
  struct stat status {};
  EXPECT_EQ(::fstat(shared->fd.get(), &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512 / page;
}

TEST(SegmentTable, PrefersANodeAndDoesWithoutIt) {
  SegmentTable table;
  for (const int node : {-1, 0, 1023, 100'000}) {
    const auto at = table.allocate(3 * page, node != 0, node);
    ASSERT_TRUE(at) << at.error().text();
    (*at)[page] = std::byte{7};
    EXPECT_TRUE(table.move_aside(*at));
    EXPECT_EQ((*at)[page], std::byte{7});
    if (node != 0) {
      EXPECT_EQ(table.node_refused() != 0, node > 0) << "no machine has that many";
    }
  }
}

TEST(SegmentTable, MemoryIsZeroAlignedAndLargeEnough) {
  SegmentTable table;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, page, page + 1, huge_page - 1, huge_page, 3 * huge_page + 1}) {
    for (const bool touch : {false, true}) {
      std::byte* const at = allocate(table, bytes, touch);
      ASSERT_NE(at, nullptr);
      const std::size_t alignment = bytes >= huge_page ? huge_page : page;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      EXPECT_TRUE(std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::memset(at, 0xff, bytes);
      EXPECT_TRUE(table.free(at));
    }
  }
}

TEST(SegmentTable, TouchedMemoryHasItsPagesAndOtherMemoryNone) {
  SegmentTable table;
  EXPECT_EQ(pages_held(table, allocate(table, 3 * huge_page, true)), 3 * huge_page / page);
  EXPECT_EQ(pages_held(table, allocate(table, 3 * huge_page, false)), 0u);
}

TEST(SegmentTable, FindsExactlyWhatLiesInside) {
  SegmentTable table;
  std::byte* const first = allocate(table, 2 * page);
  std::byte* const second = allocate(table, page);
  const auto inside = table.find(first + 100, 2 * page - 100);
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->offset, 100u);
  EXPECT_NE(inside->name, table.find(second, page)->name);
  EXPECT_TRUE(table.find(first, 2 * page));
  EXPECT_FALSE(table.find(first + 100, 2 * page));
  EXPECT_FALSE(table.find(first, std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(table.find(first - 1, 2)) << "not even where two segments touch";
  int elsewhere = 0;
  EXPECT_FALSE(table.find(&elsewhere, sizeof elsewhere));
  EXPECT_FALSE(table.find(nullptr, 0));
}

TEST(SegmentTable, FreeingIsCountedAndForgetsTheName) {
  SegmentTable table;
  std::byte* const at = allocate(table, page);
  const SegmentName name = table.find(at, 1)->name;
  EXPECT_TRUE(table.alive(name));
  EXPECT_EQ(table.free(at + 1).error().code, Code::invalid_argument);
  const auto before = table.retired();
  ASSERT_TRUE(table.free(at));
  EXPECT_EQ(table.retired(), before + 1);
  EXPECT_FALSE(table.alive(name));
  EXPECT_FALSE(table.share(name));
  EXPECT_EQ(table.free(at).error().code, Code::invalid_argument);
  EXPECT_NE(table.find(allocate(table, page), 1)->name, name) << "names are not used twice";
}

TEST(SegmentTable, NobodyCanResizeWhatIsShared) {
  SegmentTable table;
  std::byte* const at = allocate(table, page);
  auto shared = table.share(table.find(at, 1)->name);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->bytes, page);
  EXPECT_NE(::ftruncate(shared->fd.get(), 0), 0);
  EXPECT_NE(::ftruncate(shared->fd.get(), 2 * page), 0);
  EXPECT_NE(::fcntl(shared->fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_NE(::fcntl(shared->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SegmentTable, MovedSegmentsKeepContentAndAddressAndAreOutOfOldReach) {
  SegmentTable table;
  for (const std::size_t bytes : {3 * page, 2 * huge_page}) {
    std::byte* const at = allocate(table, bytes);
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(i * 7 + (i >> 12));
    const SegmentName before = table.find(at, 1)->name;
    auto shared = table.share(before);
    auto peer = Mapping::shared(shared->fd.get(), bytes);
    ASSERT_TRUE(peer);
    const auto retired = table.retired();

    ASSERT_TRUE(table.move_aside(at + page));
    std::memset(peer->data(), 0xee, bytes);  // a peer that wakes late
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(at[i], static_cast<std::byte>(i * 7 + (i >> 12))) << i;

    const auto now = table.find(at, bytes);
    ASSERT_TRUE(now);
    EXPECT_EQ(now->name.id, before.id);
    EXPECT_EQ(now->name.generation, before.generation + 1);
    EXPECT_EQ(table.retired(), retired + 1);
    EXPECT_FALSE(table.share(before)) << "nobody can map the old life";
    auto fresh = Mapping::shared(table.share(now->name)->fd.get(), bytes);
    ASSERT_TRUE(fresh);
    fresh->data()[5] = std::byte{0x55};
    EXPECT_EQ(at[5], std::byte{0x55}) << "the new life is shared as the old one was";
  }
}

TEST(SegmentTable, MovedSegmentsStaySparse) {
  SegmentTable table;
  std::byte* const at = allocate(table, 64 * page, false);
  at[10 * page] = std::byte{1};
  at[40 * page + 5] = std::byte{2};
  ASSERT_TRUE(table.move_aside(at));
  EXPECT_EQ(pages_held(table, at), 2u);
  EXPECT_EQ(at[10 * page], std::byte{1});
  EXPECT_EQ(at[40 * page + 5], std::byte{2});
}

TEST(SegmentTable, MovingLeavesOtherMemoryAlone) {
  SegmentTable table;
  std::byte* const at = allocate(table, page);
  int elsewhere = 42;
  EXPECT_TRUE(table.move_aside(&elsewhere));
  EXPECT_TRUE(table.move_aside(nullptr));
  EXPECT_EQ(elsewhere, 42);
  EXPECT_EQ(table.find(at, 1)->name.generation, 0u);
  EXPECT_EQ(table.retired(), 0u);
}

TEST(SegmentTable, MoreMemoryThanThereIsIsAnErrorWithANumber) {
  SegmentTable table;
  const auto much = table.allocate(std::size_t{1} << 46, true);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code, Code::system);
  EXPECT_NE(much.error().what.find(std::to_string(std::size_t{1} << 46)), std::string::npos);
  for (const bool touch : {false, true})
    EXPECT_EQ(table.allocate(std::numeric_limits<std::size_t>::max(), touch).error().code, Code::system);
}

TEST(SegmentTable, LimitsAreErrorsThatSayWhatToRaise) {
  SegmentTable table;
  std::byte* const at = allocate(table, page);
  const SegmentName name = table.find(at, 1)->name;
  {
    const Limit limit(RLIMIT_FSIZE, page);
    const auto none = table.allocate(2 * page, true);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().what.find("ulimit -f"), std::string::npos);
  }
  {
    const Limit limit(RLIMIT_NOFILE, 0);
    const auto none = table.allocate(page, true);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().text().find("ulimit -n"), std::string::npos);
    EXPECT_EQ(table.share(name).error().code, Code::system);
    EXPECT_EQ(table.move_aside(at).error().code, Code::system);
  }
  EXPECT_TRUE(table.alive(name)) << "what fails leaves all as it was";
  EXPECT_TRUE(table.find(allocate(table, page), page));
}

/// In a process of its own: 0 where memory is had, given back and moved although its advice is refused.
int memory_without_advice(unsigned refusal) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!testing::forbid_calls({SYS_madvise, SYS_mbind, SYS_fallocate}, refusal)) ::_exit(77);
    SegmentTable table;
    for (const std::size_t bytes : {page, 2 * huge_page}) {
      auto at = table.allocate(bytes, /*touch=*/true, /*node=*/0);
      if (!at) ::_exit(1);
      (*at)[bytes - 1] = std::byte{7};
      if (!table.move_aside(*at) || (*at)[bytes - 1] != std::byte{7} || !table.free(*at)) ::_exit(2);
    }
    std::vector<std::byte> own(3 * page, std::byte{5});
    if (!table.adopt(own)) ::_exit(3);
    table.disown(own);
    if (table.find(own.data(), own.size()) || std::ranges::count(own, std::byte{5}) != 3 * page) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SegmentTable, DoesWithoutAdviceThatAFilterForbids) {
  for (const unsigned refusal : {EPERM, ENOSYS, EACCES}) {
    const int had = memory_without_advice(refusal);
    if (had == 77) GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(had, 0) << "errno " << refusal;
  }
}

TEST(SegmentTable, KeepsNoDescriptorOfWhatIsFreed) {
  SegmentTable table;
  const auto before = testing::open_descriptors();
  for (int i = 0; i < 100; ++i) {
    std::byte* const at = allocate(table, page);
    ASSERT_TRUE(table.move_aside(at));
    ASSERT_TRUE(table.free(at));
  }
  EXPECT_EQ(testing::open_descriptors(), before);
}

TEST(SegmentTable, SharesADescriptorThatIsOfferedAsLongAsThatLives) {
  SegmentTable table;
  UniqueFd own(::memfd_create("offered", MFD_CLOEXEC));
  ASSERT_TRUE(own);
  struct stat first {
  }, second{};
  ASSERT_EQ(::fstat(own.get(), &first), 0);
  auto offered = table.offer({.fd = std::move(own), .bytes = 123});
  const SegmentName name = offered->name();
  auto shared = table.share(name);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->bytes, 123u);
  ASSERT_EQ(::fstat(shared->fd.get(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_NE(name, table.offer({.fd = std::move(shared->fd), .bytes = 1})->name());
  offered.reset();
  EXPECT_FALSE(table.share(name));
}

TEST(SegmentTable, IsSafeFromManyThreads) {
  SegmentTable table;
  std::byte* const common = allocate(table, page);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&table, common] {
      for (int i = 0; i < 100; ++i) {
        std::byte* const at = allocate(table, page);
        const auto location = table.find(at, page);
        ASSERT_TRUE(location);
        ASSERT_TRUE(table.share(location->name));
        ASSERT_TRUE(table.find(common, 1));
        ASSERT_TRUE(table.free(at));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(table.retired(), 400u);
}

TEST(SegmentCache, MapsOnceAndLetsGoWithTheLastHolder) {
  SegmentTable table;
  SegmentCache cache;
  std::byte* const at = allocate(table, 2 * page);
  const SegmentName name = table.find(at, 1)->name;
  int fetches = 0;
  const auto fetch = [&](std::uint64_t, SegmentName wanted) {
    ++fetches;
    return table.share(wanted);
  };
  auto first = cache.map(9, name, page, fetch);
  ASSERT_TRUE(first);
  auto second = cache.map(9, name, 2 * page, fetch);
  ASSERT_TRUE(second);
  EXPECT_EQ((*first)->data(), (*second)->data());
  EXPECT_EQ(fetches, 1);
  (*first)->data()[3] = std::byte{9};
  EXPECT_EQ(at[3], std::byte{9});
  EXPECT_EQ(cache.map(9, name, 2 * page + 1, fetch).error().code, Code::remote);

  auto elsewhere = cache.map(8, name, page, fetch);
  ASSERT_TRUE(elsewhere);
  EXPECT_NE((*elsewhere)->data(), (*first)->data()) << "another process's segment of the same name";

  *first = nullptr;
  *second = nullptr;
  ASSERT_TRUE(cache.map(9, name, page, fetch));
  EXPECT_EQ(fetches, 3);
}

TEST(SegmentCache, GivesRacingThreadsOneMapping) {
  SegmentTable table;
  std::byte* const at = allocate(table, page);
  const SegmentName name = table.find(at, 1)->name;
  for (int round = 0; round < 50; ++round) {
    SegmentCache cache;
    std::atomic<int> inside = 0;
    const auto fetch = [&](std::uint64_t, SegmentName wanted) {
      // Both threads come this far before either has mapped.
      ++inside;
      while (inside.load() < 2) std::this_thread::yield();
      return table.share(wanted);
    };
    SharedMapping mine;
    SharedMapping theirs;
    std::thread other([&] { theirs = *cache.map(1, name, page, fetch); });
    mine = *cache.map(1, name, page, fetch);
    other.join();
    ASSERT_EQ(mine->data(), theirs->data());
  }
}

TEST(SegmentCache, RefusesWhatItsOwnerCouldShorten) {
  SegmentCache cache;
  const auto fetch = [](std::uint64_t, SegmentName) -> Result<SegmentTable::Export> {
    UniqueFd fd(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), page), 0);
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
    return SegmentTable::Export{.fd = std::move(fd), .bytes = page};
  };
  EXPECT_EQ(cache.map(1, {.id = 1}, page, fetch).error().code, Code::remote);
  const auto file = [](std::uint64_t, SegmentName) -> Result<SegmentTable::Export> {
    return SegmentTable::Export{.fd = UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), .bytes = page};
  };
  EXPECT_EQ(cache.map(1, {.id = 1}, page, file).error().code, Code::remote);
}

TEST(SegmentCache, BelievesTheKernelAboutTheLength) {
  SegmentTable table;
  SegmentCache cache;
  std::byte* const at = allocate(table, page);
  const auto fetch = [&](std::uint64_t, SegmentName name) {
    auto shared = table.share(name);
    shared->bytes = 100 * page;  // so the owner says
    return shared;
  };
  EXPECT_EQ(cache.map(1, table.find(at, 1)->name, 100 * page, fetch).error().code, Code::remote);
}

TEST(SegmentCache, PassesOnWhyFetchingFailed) {
  SegmentTable table;
  SegmentCache cache;
  EXPECT_EQ(cache.map(1, {.id = 77}, 1, from(table)).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace tutti
