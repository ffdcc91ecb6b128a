// Tells peers where in the buffers of a call their next messages may be written.
#pragma once

#include <cstddef>

#include "exec/passes.h"

namespace tutti {

/// Invites in the order of the plan, across tiles, until a message must wait. `channels`: of the run, so how many tiles
/// later the channel's next one is.
void invite(const BoundPlan& bound, Channel& channel, const Cursor& cursor, std::size_t channels);

}  // namespace tutti
