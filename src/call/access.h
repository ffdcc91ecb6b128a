// Chooses the access of a call from its size, the facts agreed at the start, the predictions, and the call descriptors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

#include "base/limits.h"
#include "choice/access_table.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

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
  /// Its bit width: the index into AccessTable.
  std::size_t width() const { return static_cast<std::size_t>(std::bit_width(choice_bytes())); }
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
inline bool fits_inline(const CallSize& size, const AccessFacts& facts, const AccessTable& access_table) {
  if (size.group_bytes == 0) return true;
  return !facts.forced && size.choice_bytes() < access_table.inline_below &&
         size.input_bytes_max <= facts.payload_bytes;
}

/// Whether a rank whose buffers are not mapped also puts its input into its call descriptor, although the call is not
/// small. Not for inputs so small that they would overwrite the descriptor's buffers.
inline bool may_carry(const CallSize& size, const AccessFacts& facts, const AccessTable& access_table) {
  return !facts.forced && !facts.spans_hosts && !facts.one_process && size.input_bytes_max > limits::line_bytes &&
         size.input_bytes_max <= facts.payload_bytes && access_table.carries[size.width()];
}

/// Whether the access of ordinary memory depends on its pages.
inline bool pages_matter(const CallSize& size, const AccessFacts& facts, const AccessTable& access_table) {
  return !facts.forced && facts.pulls && access_table.pulls[size.width()] != access_table.pulls_huge[size.width()];
}

/// What the call descriptors of all ranks tell of their buffers.
struct Buffers {
  bool mapped = true;    ///< they lie in segments
  bool carried = true;   ///< the inputs are in the descriptors
  bool huge = true;      ///< they lie on huge pages, where pages_matter
  bool mappable = true;  ///< no rank has lost the right to map segments of others since the start, or to let others map
  bool readable = true;  ///< nor the right to copy from ordinary memory; false also where a rank has not looked
};

/// The access of a call that is not inline by its size.
inline Access large_access(const CallSize& size, const AccessFacts& facts, const AccessTable& access_table,
                           const Buffers& buffers) {
  if (facts.forced == Access::slots || facts.spans_hosts) return Access::slots;
  const bool maps = (buffers.mapped && buffers.mappable) || facts.one_process;
  if (maps && facts.forced != Access::cma) return Access::mapped;
  if (buffers.carried && may_carry(size, facts, access_table)) return Access::in_line;
  const bool pays = (buffers.huge ? access_table.pulls_huge : access_table.pulls)[size.width()];
  return facts.pulls && buffers.readable && (facts.forced == Access::cma || pays) ? Access::cma : Access::slots;
}

}  // namespace tutti
