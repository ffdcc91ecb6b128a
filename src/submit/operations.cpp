#include "submit/operations.h"

#include <algorithm>

#include "collective/collective_call.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_call.h"
#include "gpu/host_staged_operation.h"

namespace tutti {

void make_collective(HeldOperation& made, Communicator& communicator, Request& request) {
  if (request.host_staged) return made.emplace<HostStagedCollective>(communicator, request);
  if (request.on_gpu) return made.emplace<GpuCall>(communicator, request);
  made.emplace<CollectiveCall>(communicator, request);
}

void make_transfers(HeldOperation& made, Communicator& communicator, std::span<PeerRequest> requests) {
  const auto staged = [](const PeerRequest& request) { return request.host_staged != nullptr; };
  if (std::ranges::any_of(requests, staged)) return made.emplace<HostStagedTransfers>(communicator, requests);
  made.emplace<PointToPoint>(communicator, requests);
}

}  // namespace tutti
