// Prefetches a cache line for writing.
#pragma once

#include <cstddef>

namespace tutti {

/// Another core often owns the line that will be written: without this, each store in turn waits for it.
inline void prefetch_to_write(const std::byte* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace tutti
