// Makes the operation that serves a request, so that the code that drives it need not know its kind.
#pragma once

#include <cstdint>
#include <span>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Makes the operation of a collective, as its route says. `communicator` and `request` must outlive it. The call's
/// turn must have come before the operation is advanced. `published`: as in make_host_collective.
void make_collective(HeldOperation& made, Communicator& communicator, const Request& request,
                     std::uint64_t published = 0);

/// Makes the operation of all sends and receives of a group.
void make_transfers(HeldOperation& made, Communicator& communicator, std::span<const PeerRequest> requests);

}  // namespace tutti
