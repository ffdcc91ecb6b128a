// Whether each action of a plan can be carried out at all: its action, peer, places and blocks exist.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti::proof {

/// Checks without running that `plan` is `rank`'s plan of `schedule`, and that all its operands are in range and of a
/// kind that its access has. Errors: internal, with peer = rank and step set.
Result<void> check_operands(const Schedule& schedule, const Plan& plan, Rank rank);

/// "scratch block 3", "item 2 of the message from rank 1".
std::string describe(const Place& place, bool written);
std::string_view verb_name(Verb verb);

}  // namespace tutti::proof
