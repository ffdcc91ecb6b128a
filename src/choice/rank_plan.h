// The plan of one rank, at the cost of that rank's work where the algorithm permits it.
#pragma once

#include "algorithms/algorithm.h"
#include "plan/plan.h"

namespace tutti {

/// True if rank_plan builds the transfers of one rank only. Flags between ranks that access each other's memory depend
/// on the work of all ranks, so plans for windows need the whole schedule, as do the few algorithms that say so.
bool costs_one_rank(const Algorithm& algorithm, Access access);

/// The answer of direct() (plan/counts.h) for the whole schedule. Few ranks may have a direct schedule by any
/// algorithm.
bool is_direct(const Algorithm& algorithm, const Shape& shape);

/// The answer of keeps_groups() for the whole schedule.
bool keeps_groups(const Algorithm& algorithm, const Shape& shape);

/// The same plan as lower(algorithm.build(shape), rank, access), not fused; only `items_max` may be larger, and scratch
/// smaller, as other ranks may need more of it.
Plan rank_plan(const Algorithm& algorithm, const Shape& shape, Rank rank, Access access);

}  // namespace tutti
