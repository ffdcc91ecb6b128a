// Which kind of operation serves a request: whoever drives it need not know.
#pragma once

#include <span>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Both must outlive the operation, whose turn has come.
void make_collective(HeldOperation& made, Communicator& communicator, Request& request);

/// All sends and receives of a group.
void make_transfers(HeldOperation& made, Communicator& communicator, std::span<PeerRequest> requests);

}  // namespace tutti
