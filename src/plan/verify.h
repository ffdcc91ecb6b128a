// Proves that a schedule computes its collective, or names the rank and block that are wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti {

/// Properties of a verified schedule.
struct Meaning {
  /// One hash per output block of rank 0 (of the root if only the root has output; of the last rank of a prefix
  /// reduction) over the tree of reduction passes: equal hashes mean equal bits.
  std::vector<std::uint64_t> order;
  /// True if every rank that has an output block has the same tree for it.
  bool same_bits = true;
  /// True if every reduced output block of every rank is one reduction of all its inputs in rank order. All such
  /// schedules of one collective and number of ranks give the same bits, however they divide the call.
  bool rank_order = true;
};

/// Proves: every output block of every rank ends with exactly the right contributions, each counted once, those of a
/// prefix reduction in the order of ranks; no transfer reads an undefined block, or an input that an earlier step
/// overwrote when the rank works in place; no two transfers of a step write one block except as one reduction; refs are
/// inside their buffers and connect blocks of one part. Errors: internal, with peer = the rank that is wrong.
Result<Meaning> verify(const Schedule& schedule);

}  // namespace tutti
