// Proves what a schedule means, or names the rank and block that is wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti {

/// What a verified schedule promises.
struct Meaning {
  /// One hash per output block of rank 0 (of the root where only it has output) over the tree of reduction passes:
  /// equal hashes mean equal bits.
  std::vector<std::uint64_t> order;
  /// True when every rank that holds an output block holds the same tree for it.
  bool same_bits = true;
  /// True when every reduced output block of every rank is one reduction of all inputs in the order of ranks: schedules
  /// that are, of one collective and number of ranks, give the same bits, however they cut the call.
  bool rank_order = true;
};

/// Every output block of every rank ends as exactly the right contributions, each counted once; no transfer reads an
/// undefined block, or an input that an earlier step overwrote when the rank works in place; no two transfers of a step
/// write one block except as one reduction; refs are inside their buffers and join blocks of one part. Errors:
/// internal, with peer = the rank that is wrong.
Result<Meaning> verify(const Schedule& schedule);

}  // namespace tutti
