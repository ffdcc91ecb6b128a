// Seeded random numbers that are the same on every machine, and the seed of a test run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tutti::testing {

/// splitmix64: small, and all that tests need.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// 0 … bound - 1.
  int below(int bound) { return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(bound) >> 32); }
  /// low … high.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// TUTTI_TEST_SEED, to replay a run; else always the same.
inline std::uint64_t test_seed() {
  const char* text = std::getenv("TUTTI_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 0) : 20251;
}

}  // namespace tutti::testing
