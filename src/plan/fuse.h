// Fewer passes over memory with the same result.
#pragma once

#include "plan/plan.h"

namespace tutti {

/// Merges a pass with the copies of its result that follow it: receive + reduce + send becomes one pass from a slot and
/// the rank's own block into the next slot; reduce + stores into every peer's output becomes one pass. Drops stores
/// that are never read (scratch, and blocks that are overwritten). Never merges two reductions: their grouping
/// determines the rounding.
///
/// `slots`: the least number of slots of any connection. A forwarding pass holds one message while it waits for a slot.
/// With one slot, only passes that cannot wait in a cycle are merged: trees qualify, rings need two slots.
Plan fuse(Plan plan, int slots = 1);

}  // namespace tutti
