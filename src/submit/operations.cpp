#include "submit/operations.h"

#include <algorithm>

#include "collective/host_collective.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_messages.h"
#include "gpu/host_staged_operation.h"

namespace tutti {

void make_collective(HeldOperation& made, Communicator& communicator, Request& request) {
  if (request.device) return request.device->make(made, communicator, request);
  make_host_collective(made, communicator, request);
}

void make_transfers(HeldOperation& made, Communicator& communicator, std::span<PeerRequest> requests) {
  const auto& first = requests.front().device;
  if (first && !first->through_host()) return made.emplace<GpuMessages>(communicator, requests);
  const auto on_device = [](const PeerRequest& request) { return request.device != nullptr; };
  if (std::ranges::any_of(requests, on_device)) return made.emplace<HostStagedTransfers>(communicator, requests);
  made.emplace<PointToPoint>(communicator, requests);
}

}  // namespace tutti
