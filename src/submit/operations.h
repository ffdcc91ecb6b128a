// Which kind of operation serves a request: whoever drives it need not know.
#pragma once

#include <memory>
#include <span>

#include "call/operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Both must outlive the operation; it may be advanced when the call's turn has come.
std::unique_ptr<Operation> make_collective(Communicator& communicator, Request& request);

/// All sends and receives of a group.
std::unique_ptr<Operation> make_transfers(Communicator& communicator, std::span<PeerRequest> requests);

}  // namespace tutti
