// From the global view to one rank's program.
#pragma once

#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// True when `schedule`, already proven, can be carried that way. All: some order of a rank's passes in each step lets
/// all of them read what the step began with, in place too. `inline`: one step that reads inputs alone. `mapped`,
/// `cma`: no rank sees another's scratch, and no two ranks touch one block in one step if one of them writes.
bool lowers_to(const Schedule& schedule, Access access);

/// The program of `rank`, through slots and by lines without making those of others: each transfer bound to a message,
/// a window or a call descriptor, with the waits that order them. Requires lowers_to(schedule, access).
Plan lower(const Schedule& schedule, Rank rank, Access access);

/// The programs of all ranks, for less than lower of each.
std::vector<Plan> lower_all(const Schedule& schedule, Access access);

}  // namespace tutti
