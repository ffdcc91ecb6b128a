#include "submit/operations.h"

#include "collective/host_collective.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_call.h"
#include "gpu/gpu_messages.h"
#include "gpu/gpu_peer_call.h"

namespace tutti {

void make_collective(HeldOperation& made, Communicator& communicator, const Request& request, std::uint64_t published) {
  switch (request.route.path) {
    case Path::single_launch:
    case Path::synchronising: return made.emplace<GpuCall>(communicator, request);
    case Path::released:
      return made.emplace<GpuPeerCall>(communicator, request, static_cast<const ReleasedCall&>(*request.queued));
    case Path::nothing:
    case Path::inside_host:
    case Path::across_hosts:
    case Path::staged: break;
  }
  make_host_collective(made, communicator, request, published);
}

void make_transfers(HeldOperation& made, Communicator& communicator, std::span<const PeerRequest> requests) {
  if (requests.front().route.one_kernel()) return made.emplace<GpuMessages>(communicator, requests);
  made.emplace<PointToPoint>(communicator, requests);
}

}  // namespace tutti
