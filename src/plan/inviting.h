// Which messages their sender can write into the buffers of their receiver.
#pragma once

#include <cstddef>

#include "plan/plan.h"

namespace tutti {

/// A message's sender can be told where its only block goes before the message leaves, once no pass before the copy
/// needs what is there. Of a plan whose data travels through slots only; others have none.
Invitations invitations(const Plan& plan);

/// The destination into which a copy receives its block; null: none is in the rank's own buffers.
const Place* landing_place(const Plan& plan, const Action& action);

/// Whether the pass at index `pass` is a copy of a block of a message that no later pass reads from the message, into
/// this rank's own buffers.
bool lands(const Plan& plan, std::size_t pass);

}  // namespace tutti
