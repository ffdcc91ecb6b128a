// Which seeds a seeded test runs: some, TUTTI_TEST_SEEDS of them, a share of them under a sanitizer, or the one of
// TUTTI_TEST_SEED to replay a failure.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "support/share.h"

namespace tutti {

inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* one = std::getenv("TUTTI_TEST_SEED")) return {std::strtoull(one, nullptr, 10)};
  if (const char* more = std::getenv("TUTTI_TEST_SEEDS")) {
    count = std::strtoull(more, nullptr, 10);
  } else {
    count = static_cast<std::uint64_t>(share_of(static_cast<int>(count)));
  }
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

}  // namespace tutti
