// Whether memory of this process lies on huge pages.
#pragma once

#include "base/unique_fd.h"

namespace tutti {

/// Asks the kernel (PAGEMAP_SCAN, Linux 6.7). Thread-safe.
class PageKinds {
 public:
  PageKinds();
  /// Of the page that contains `at`; false if the kernel cannot tell. A system call.
  bool huge(const void* at) const;

 private:
  UniqueFd pagemap_;
};

}  // namespace tutti
