// Chooses the protocol of a collective on host memory.
#pragma once

#include <cstdint>

#include "call/held_operation.h"
#include "collective/collective_across_hosts.h"
#include "collective/collective_inside_host.h"

namespace tutti {

/// Both must outlive the operation. The request's turn must have come before the operation is advanced. `published`:
/// the number of the call if a SmallCall has published its descriptor.
inline void make_host_collective(HeldOperation& made, Communicator& communicator, const Request& request,
                                 std::uint64_t published = 0) {
  if (communicator.members().spans_hosts()) return made.emplace<CollectiveAcrossHosts>(communicator, request);
  made.emplace<CollectiveInsideHost>(communicator, request, published);
}

}  // namespace tutti
