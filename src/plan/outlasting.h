// Which messages can be read from the buffers of their sender.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace tutti {

/// The place in this rank's own buffers that holds, during and after the pass, what the pass stores into messages; null
/// if there is none. `scaled`: the pass scales sources that are leaves.
const Place* lasting_place(const Plan& plan, const Action& action, bool scaled);

/// By place of the plan. True for a slot if the block that a pass stores there lies in this rank's buffers too, and no
/// pass of the message's step or an earlier one changes the block afterwards. A later pass that changes the block can
/// wait until the message's receiver has released it: the receiver does so before it goes on to the next step, so each
/// such wait is for an earlier step, and no cycle of ranks waits for each other. Within a step, two ranks that exchange
/// blocks and both overwrite theirs would wait for each other.
std::vector<bool> outlasting(const Plan& plan);

}  // namespace tutti
