// Whether memory of this process lies on huge pages.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/unique_fd.h"

namespace tutti {

/// Asks the kernel (PAGEMAP_SCAN, Linux 6.7). Holds a descriptor from the first question on. Thread-safe.
class PageKinds {
 public:
  /// An answer is given so many times before the kernel is asked again: calls use the same buffers over and over, and
  /// an answer that has become wrong costs them time only.
  static constexpr int repeats = 256;

  /// Of the page that contains `at`; false if the kernel cannot tell.
  bool huge(const void* at);

 private:
  bool ask(std::uint64_t page);
  /// By 2 MiB of memory, which are one huge page or none: number · 1024 + 512 if huge + how often it may be repeated.
  std::array<std::atomic<std::uint64_t>, 64> answers_{};
  std::once_flag asked_;
  UniqueFd pagemap_;
};

}  // namespace tutti
