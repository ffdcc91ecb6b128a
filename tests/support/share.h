// What part of their repetitions tests make: all, and a share under sanitizers, where each costs many times as much.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace tutti {

/// TUTTI_TEST_SHARE, 1 … 100; else 100, and `sanitized` under a sanitizer.
inline int share_percent([[maybe_unused]] int sanitized = 25) {
  if (const char* given = std::getenv("TUTTI_TEST_SHARE")) return std::clamp(std::atoi(given), 1, 100);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return sanitized;
#else
  return 100;
#endif
}

/// How many of so many seeds, rounds, kills or changes that are alike; at least `least`.
inline int share_of(int all, int least = 1) {
  return std::max(all * share_percent() / 100, std::min(all, least));
}

/// Whether the nth of a list is among those to run, which are spread over the list evenly. Where several tests go
/// through one list, each begins with another number: together they see more of it. `sanitized`: see share_percent.
inline bool in_share(int nth, int sanitized = 25) {
  const int percent = share_percent(sanitized);
  return (nth + 1) * percent / 100 > nth * percent / 100;
}

}  // namespace tutti
