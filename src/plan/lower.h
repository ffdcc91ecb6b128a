// From a schedule of all ranks to one rank's plan.
#pragma once

#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// True if `schedule`, already proven, can be carried out with this access. All accesses: some order of a rank's passes
/// in each step lets all of them read the values at the beginning of the step, in place too. `inline`: one step that
/// reads inputs only. `mapped`, `cma`: no rank accesses another's scratch, and no two ranks access one block in one
/// step if one of them writes.
bool lowers_to(const Schedule& schedule, Access access);

/// The plan of `rank`; for slots and inline, without making the plans of other ranks. Binds each transfer to a message,
/// a window or a call descriptor, with the waits that order them. Requires lowers_to(schedule, access). Of a schedule
/// with one rank's transfers, which only slots and inline allow, that rank's; `items_max` is then about that rank
/// alone, and `direct` unknown (false).
Plan lower(const Schedule& schedule, Rank rank, Access access);

/// The plans of all ranks; cheaper than lower for each.
std::vector<Plan> lower_all(const Schedule& schedule, Access access);

}  // namespace tutti
