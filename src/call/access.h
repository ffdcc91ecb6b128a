// Chooses the access of a call from its size, the facts agreed at the start, and the call descriptors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/limits.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

// Measured with two, four and eight ranks on two cores, see docs/performance.md.

/// Calls are inline if no buffer is larger than this, or if the inputs fit a cache line. For larger calls it is faster
/// to use the buffers in place, if they are mapped.
inline constexpr std::size_t small_bytes_max = 2 * 1024;

/// Total size of all ranks' inputs up to which inline beats slots if buffers are not mapped.
inline constexpr std::size_t carried_bytes_max = 32 * 1024;

/// If a rank reads less than this from each peer, copying through slots beats one CMA system call per peer. With two
/// ranks (pair), or more (many).
inline constexpr std::size_t pull_bytes_min_pair = 16 * 1024;
inline constexpr std::size_t pull_bytes_min_many = 32 * 1024;

/// The size of a call; equal on all ranks, including ranks without input.
struct CallSize {
  Collective collective = Collective::barrier;
  int ranks = 1;
  std::size_t group_bytes = 0;
  std::size_t input_bytes_max = 0;  ///< the largest input of any rank

  CallSize() = default;
  CallSize(Collective collective_in, int ranks_in, Rank root, std::size_t group_bytes_in)
      : collective(collective_in), ranks(ranks_in), group_bytes(group_bytes_in) {
    input_bytes_max = input_groups(collective, ranks, rooted(collective) ? root : 0, root) * group_bytes;
  }
  /// The largest buffer of any rank.
  std::size_t bytes_max(Rank root) const {
    return std::max(input_bytes_max,
                    output_groups(collective, ranks, rooted(collective) ? root : 0, root) * group_bytes);
  }
  /// The size by which algorithms are chosen.
  std::size_t choice_bytes() const { return std::max(input_bytes_max, group_bytes); }
};

/// Facts agreed at the start; equal on all ranks.
struct AccessFacts {
  std::optional<Access> forced;
  bool spans_hosts = false;  ///< not all ranks share memory
  bool one_process = false;
  bool pulls = false;             ///< every rank may use CMA on every process
  std::size_t payload_bytes = 0;  ///< of a call descriptor
};

/// Whether a call of ranks that share memory is inline because it is small.
inline bool fits_inline(const CallSize& size, Rank root, std::optional<Access> forced) {
  if (size.group_bytes == 0) return true;
  return !forced && (size.bytes_max(root) <= small_bytes_max || size.input_bytes_max <= limits::line_bytes);
}

/// Whether a rank whose buffers are not mapped also puts its input into its call descriptor, although the call is not
/// small. Not for inputs so small that they would overwrite the descriptor's buffers.
inline bool may_carry(const CallSize& size, const AccessFacts& facts) {
  return !facts.forced && !facts.spans_hosts && !facts.one_process && size.input_bytes_max > limits::line_bytes &&
         size.input_bytes_max <= facts.payload_bytes && size.input_bytes_max * size.ranks <= carried_bytes_max;
}

/// The access of a call that is not inline by its size. `mapped`: every buffer of every rank lies in a segment.
/// `all_carry`: every rank's descriptor carries its input.
inline Access large_access(const CallSize& size, const AccessFacts& facts, bool mapped, bool all_carry) {
  if (facts.forced == Access::slots || facts.spans_hosts) return Access::slots;
  if ((mapped || facts.one_process) && facts.forced != Access::cma) return Access::mapped;
  if (all_carry && may_carry(size, facts)) return Access::in_line;
  const std::size_t pulled = size.group_bytes / (size.collective == Collective::all_reduce ? size.ranks : 1);
  const bool pays = pulled >= (size.ranks == 2 ? pull_bytes_min_pair : pull_bytes_min_many);
  return facts.pulls && (facts.forced == Access::cma || pays) ? Access::cma : Access::slots;
}

}  // namespace tutti
