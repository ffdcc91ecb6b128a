// Makes the operation that serves a request, so that the code that drives it need not know its kind.
#pragma once

#include <span>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Makes the operation of a collective whose turn has come. `communicator` and `request` must outlive it.
void make_collective(HeldOperation& made, Communicator& communicator, Request& request);

/// Makes the operation of all sends and receives of a group.
void make_transfers(HeldOperation& made, Communicator& communicator, std::span<PeerRequest> requests);

}  // namespace tutti
