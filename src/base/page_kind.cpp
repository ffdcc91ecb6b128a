#include "base/page_kind.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cstdint>

#include "base/descriptors.h"

namespace tutti {
namespace {

// As in <linux/fs.h> since 6.7; older headers lack it.
struct Region {
  std::uint64_t start, end, categories;
};
struct ScanArguments {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long scan_request = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t is_huge = std::uint64_t{1} << 6;
constexpr std::uint64_t page_bytes = 4096, huge_page_bytes = 2 << 20;

// Of an answer: see answers_.
constexpr std::uint64_t one_region = 1024, huge_bit = 512;
static_assert(PageKinds::repeats < static_cast<int>(huge_bit));

}  // namespace

bool PageKinds::huge(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uint64_t region = address / huge_page_bytes;
  auto& answer = answers_[region % answers_.size()];
  const std::uint64_t known = answer.load(std::memory_order_relaxed);
  if (known / one_region == region && known % huge_bit > 0) {
    answer.store(known - 1, std::memory_order_relaxed);
    return known % one_region >= huge_bit;
  }
  const bool is = ask(address / page_bytes * page_bytes);
  answer.store(region * one_region + (is ? huge_bit : 0) + repeats, std::memory_order_relaxed);
  return is;
}

bool PageKinds::ask(std::uint64_t page) {
  std::call_once(asked_, [this] {
    pagemap_ = UniqueFd(above_stdio([&] { return ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }));
  });
  if (pagemap_.get() < 0) return false;
  Region found{};
  ScanArguments scan{};
  scan.size = sizeof scan;
  scan.start = page;
  scan.end = page + page_bytes;
  scan.vec = reinterpret_cast<std::uintptr_t>(&found);
  scan.vec_len = 1;
  scan.category_mask = is_huge;
  scan.return_mask = is_huge;
  return ::ioctl(pagemap_.get(), scan_request, &scan) == 1 && (found.categories & is_huge) != 0;
}

}  // namespace tutti
