// Chooses the protocol of a collective on host memory.
#pragma once

#include <cstdint>
#include <memory>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// Both must outlive the operation. The request's turn must have come before the operation is advanced. `published`:
/// the number of the call if a SmallCall has published its descriptor.
void make_host_collective(HeldOperation& made, Communicator& communicator, const Request& request,
                          std::uint64_t published = 0);
std::unique_ptr<Operation> make_host_collective(Communicator& communicator, const Request& request);

}  // namespace tutti
