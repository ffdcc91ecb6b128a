// Proves that a schedule computes its collective, or names the rank and block that are wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

/// What the user knows a write by, in a sentence: "in step 3". Empty: the user did not write it.
using NameOfWrite = std::function<std::string(int step, Rank to, Ref dst)>;

/// Proves: every output block of every rank ends with exactly the right contributions, each counted once, those of a
/// prefix reduction in the order of ranks; no transfer reads an undefined block, or an input that an earlier step
/// overwrote when the rank works in place; no two transfers of a step write one block except as one reduction; refs are
/// inside their buffers and connect blocks of one part. Errors: internal, with peer = the rank that is wrong; of an
/// output that ends wrong, the contribution that is missing and the write that lost it, named by `name`.
Result<Meaning> verify(const Schedule& schedule, const NameOfWrite& name = {});

}  // namespace tutti
