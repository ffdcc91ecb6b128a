// Ordinary memory becomes a segment and ordinary again: same content, mapped by peers in between, and nothing else is
// taken.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "transport/free_memory.h"
#include "transport/registered_ranges.h"
#include "transport/segment.h"

namespace tutti {
namespace {

constexpr std::size_t page = 4096;

/// Ordinary memory of `pages` pages, as of malloc.
class Private {
 public:
  explicit Private(std::size_t pages, int prot = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS)
      : bytes_(pages * page), at_(::mmap(nullptr, bytes_, prot, flags, -1, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Private() { ::munmap(at_, bytes_); }
  Private(const Private&) = delete;
  Private& operator=(const Private&) = delete;
  std::byte* at() const { return static_cast<std::byte*>(at_); }
  std::span<std::byte> part(std::size_t begin, std::size_t bytes) const { return {at() + begin, bytes}; }

 private:
  std::size_t bytes_;
  void* at_;
};

TEST(AdoptedMemory, IsMappedByPeersAndKeepsItsContent) {
  SegmentTable table;
  const Private memory(5);
  for (std::size_t i = 0; i < 5 * page; ++i) memory.at()[i] = static_cast<std::byte>(i * 7 / 5);
  const auto buffer = memory.part(page + 16, 2 * page);  // of three pages
  ASSERT_TRUE(table.adopt(buffer));
  for (std::size_t i = 0; i < 5 * page; ++i) ASSERT_EQ(memory.at()[i], static_cast<std::byte>(i * 7 / 5)) << i;

  const auto location = table.find(buffer.data(), buffer.size());
  ASSERT_TRUE(location);
  EXPECT_EQ(location->offset, 16U);
  EXPECT_FALSE(table.find(memory.at(), 1));
  EXPECT_FALSE(table.find(memory.at() + 4 * page, 1));
  auto shared = table.share(location->name);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->bytes, 3 * page);
  auto peer = Mapping::shared(shared->fd.get(), shared->bytes);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->data()[16], buffer[0]);
  peer->data()[17] = std::byte{99};
  EXPECT_EQ(buffer[1], std::byte{99});

  EXPECT_EQ(table.free(memory.at() + page).error().code, Code::invalid_argument) << "not from tuttiMemAlloc";
  const auto before = table.retired();
  table.disown(buffer);
  EXPECT_EQ(table.retired(), before + 1);
  EXPECT_FALSE(table.find(buffer.data(), 1));
  EXPECT_FALSE(table.share(location->name));
  EXPECT_EQ(buffer[1], std::byte{99});
  peer->data()[18] = std::byte{55};
  EXPECT_NE(buffer[2], std::byte{55}) << "no late peer writes here";
  ASSERT_TRUE(table.adopt(buffer)) << "private again";
  table.disown(buffer);
}

TEST(AdoptedMemory, LastsUntilEverybodyDisownsIt) {
  SegmentTable table;
  const Private memory(4);
  const auto whole = memory.part(0, 3 * page), inside = memory.part(page, 10), beyond = memory.part(2 * page, 2 * page);
  ASSERT_TRUE(table.adopt(whole));
  ASSERT_TRUE(table.adopt(inside));
  EXPECT_EQ(table.adopt(beyond).error().code, Code::invalid_argument);
  table.disown(whole);
  EXPECT_TRUE(table.find(inside.data(), inside.size()));
  table.disown(inside);
  EXPECT_FALSE(table.find(inside.data(), inside.size()));
  table.disown(inside);

  std::byte* const ours = *table.allocate(2 * page, /*touch=*/true);
  ASSERT_TRUE(table.adopt({ours + 5, page})) << "peers map it already";
  table.disown({ours + 5, page});
  EXPECT_TRUE(table.find(ours, 2 * page));
  EXPECT_TRUE(table.free(ours));
}

TEST(AdoptedMemory, IsGivenBackWithItsRange) {
  SegmentTable table;
  RegisteredRanges ranges;
  const Private memory(2);
  const auto first = memory.part(0, page), second = memory.part(page, page);
  const std::uint64_t id = ranges.add(first, *AdoptedMemory::adopt(table, first));
  ranges.add(second, *AdoptedMemory::adopt(table, second));
  ranges.add(memory.part(0, 2 * page));
  EXPECT_TRUE(ranges.remove(id));
  EXPECT_FALSE(table.find(first.data(), 1));
  EXPECT_TRUE(table.find(second.data(), 1));
  ranges.disown();
  EXPECT_FALSE(table.find(second.data(), 1));
  EXPECT_TRUE(ranges.find(second)) << "still registered";
}

TEST(AdoptedMemory, WasPrivateAnonymousAndWritable) {
  SegmentTable table;
  const auto refuses = [&table](std::span<std::byte> memory) {
    const auto adopted = table.adopt(memory);
    return !adopted && adopted.error().code == Code::invalid_argument;
  };
  EXPECT_TRUE(refuses(Private(2, PROT_READ).part(0, page)));
  EXPECT_TRUE(refuses(Private(2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS).part(0, page)));
  int on_stack = 0;
  EXPECT_TRUE(refuses(std::as_writable_bytes(std::span(&on_stack, 1))));
  const Private memory(3);
  ASSERT_EQ(::munmap(memory.at() + page, page), 0);
  EXPECT_TRUE(refuses(memory.part(0, 3 * page))) << "a hole";
  EXPECT_FALSE(refuses(memory.part(0, page)));
  table.disown(memory.part(0, page));
  {
    std::vector<std::byte> heap(3 * page, std::byte{3});
    ASSERT_TRUE(table.adopt(heap));
    table.disown(heap);
    EXPECT_EQ(std::count(heap.begin(), heap.end(), std::byte{3}), static_cast<std::ptrdiff_t>(heap.size()));
  }
}

TEST(PrivateMemory, IsWhatTheMapsSay) {
  const auto is = [](std::uintptr_t begin, std::uintptr_t end, std::string_view maps) {
    return is_private_anonymous({reinterpret_cast<const std::byte*>(begin), end - begin}, maps);
  };
  constexpr std::string_view maps =
      "1000-2000 rw-p 00000000 00:00 0 \n"
      "2000-3000 rwxp 00000000 00:00 0                          [heap]\n"
      "3000-4000 r--p 00000000 00:00 0 \n"
      "4000-5000 rw-s 00000000 00:01 0 \n"
      "5000-6000 rw-p 00000000 08:01 77                         /a file\n"
      "7000-8000 rw-p 00000000 00:00 0                          [stack]\n"
      "9000-a000 rw-p 00000000 00:00 0\n";
  EXPECT_TRUE(is(0x1000, 0x2000, maps));
  EXPECT_TRUE(is(0x1800, 0x3000, maps));
  EXPECT_TRUE(is(0x9000, 0xa000, maps));
  EXPECT_FALSE(is(0x800, 0x1800, maps));
  EXPECT_FALSE(is(0x9000, 0xa001, maps));
  for (const std::uintptr_t begin : {0x3000, 0x4000, 0x5000, 0x6000, 0x7000, 0x8000})
    EXPECT_FALSE(is(begin, begin + 0x1000, maps)) << begin;
  EXPECT_FALSE(is(0x2000, 0x4000, maps));
  EXPECT_FALSE(is(0x1000, 0x2000, ""));
  EXPECT_FALSE(is(0x1000, 0x2000, "nonsense\n"));
}

}  // namespace
}  // namespace tutti
