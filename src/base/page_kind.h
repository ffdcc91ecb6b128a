// Whether memory of this process lies on huge pages.
#pragma once

#include <mutex>

#include "base/unique_fd.h"

namespace tutti {

/// Asks the kernel (PAGEMAP_SCAN, Linux 6.7). Holds a descriptor from the first question on. Thread-safe.
class PageKinds {
 public:
  /// Of the page that contains `at`; false if the kernel cannot tell. A system call.
  bool huge(const void* at);

 private:
  std::once_flag asked_;
  UniqueFd pagemap_;
};

}  // namespace tutti
