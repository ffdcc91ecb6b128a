// Whether each action of a plan can be carried out at all: verbs, peers, places and blocks that exist.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti::proof {

/// What can be seen without running: `plan` is `rank`'s, of `schedule`, and all its operands are in range and of a kind
/// its access has. Errors: internal, with peer = rank and step set.
Result<void> check_operands(const Schedule& schedule, const Plan& plan, Rank rank);

/// "scratch block 3", "item 2 of the message from rank 1".
std::string describe(const Place& place, bool written);
std::string_view verb_name(Verb verb);

}  // namespace tutti::proof
