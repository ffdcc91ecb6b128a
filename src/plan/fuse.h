// Fewer passes over memory, same meaning.
#pragma once

#include "plan/plan.h"

namespace tutti {

/// Merges a pass with the copies of its result that follow: receive + reduce + send becomes one pass from slot and own
/// block into the next slot; reduce + stores into every peer's output becomes one pass. Stores that nobody reads
/// (scratch, and what is overwritten) are dropped. Never merges two reductions: grouping is rounding.
///
/// `slots`: what every connection has at least. A forwarding pass holds one message while it waits for a slot, so with
/// one slot only those are merged that cannot wait in a circle: trees are, rings need two.
Plan fuse(Plan plan, int slots = 1);

}  // namespace tutti
