// Which calls of a communicator are small, as far as calls have shown.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/types.h"

namespace tutti {

/// A call that was inline because of its size shows that smaller calls of the collective are inline as well, by the
/// same algorithm. Local knowledge: what is here changes nothing that peers see.
class SmallCalls {
 public:
  SmallCalls() { group_bytes_.fill(-1); }

  void add(Collective collective, std::size_t group_bytes, const char* algorithm) {
    auto& most = group_bytes_[static_cast<std::size_t>(collective)];
    most = std::max(most, static_cast<std::int64_t>(group_bytes));
    algorithms_[static_cast<std::size_t>(collective)] = algorithm;
  }
  bool hold(Collective collective, std::size_t group_bytes) const {
    return static_cast<std::int64_t>(group_bytes) <= group_bytes_[static_cast<std::size_t>(collective)];
  }
  /// Of the calls that `hold`.
  const char* algorithm(Collective collective) const { return algorithms_[static_cast<std::size_t>(collective)]; }

 private:
  std::array<std::int64_t, collective_count> group_bytes_;  // by collective, of the largest one so far; -1: none
  std::array<const char*, collective_count> algorithms_{};
};

}  // namespace tutti
