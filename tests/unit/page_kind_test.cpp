// Huge pages are told from small ones, and an answer is not repeated for ever.
#include "base/page_kind.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace tutti {
namespace {

constexpr std::size_t huge_page_bytes = 2 << 20;

/// Touched memory for one huge page, which it is on request if the system gives it.
class Region {
 public:
  Region() : reserved_(::mmap(nullptr, 2 * huge_page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0)) {
    EXPECT_NE(reserved_, MAP_FAILED);
  }
  ~Region() { ::munmap(reserved_, 2 * huge_page_bytes); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  std::byte* at() const {
    return static_cast<std::byte*>(reserved_) +
           (huge_page_bytes - reinterpret_cast<std::uintptr_t>(reserved_) % huge_page_bytes) % huge_page_bytes;
  }
  void map_again(int advice) const {
    ASSERT_NE(::mmap(at(), huge_page_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0), MAP_FAILED);
    ::madvise(at(), huge_page_bytes, advice);
    for (std::size_t i = 0; i < huge_page_bytes; i += 4096) at()[i] = std::byte{1};
  }

 private:
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* reserved_;
};

TEST(PageKinds, AreToldForPagesThatReplaceOthers) {
  PageKinds pages;
  const Region region, other;
  region.map_again(MADV_HUGEPAGE);
  other.map_again(MADV_NOHUGEPAGE);
  if (!pages.huge(region.at())) GTEST_SKIP() << "no huge pages here, or a kernel that cannot tell";
  EXPECT_TRUE(pages.huge(region.at() + huge_page_bytes - 1));
  EXPECT_FALSE(pages.huge(other.at()));

  region.map_again(MADV_NOHUGEPAGE);
  int asked = 0;
  while (pages.huge(region.at()) && asked <= PageKinds::repeats) ++asked;
  EXPECT_LE(asked, PageKinds::repeats);
  EXPECT_GT(asked, 0) << "each question went to the kernel";
}

}  // namespace
}  // namespace tutti
