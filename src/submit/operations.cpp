#include "submit/operations.h"

#include <algorithm>

#include "collective/collective_call.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_call.h"
#include "gpu/host_staged_operation.h"

namespace tutti {

std::unique_ptr<Operation> make_collective(Communicator& communicator, Request& request) {
  if (request.host_staged) return std::make_unique<HostStagedCollective>(communicator, request);
  if (request.on_gpu) return std::make_unique<GpuCall>(communicator, request);
  return std::make_unique<CollectiveCall>(communicator, request);
}

std::unique_ptr<Operation> make_transfers(Communicator& communicator, std::span<PeerRequest> requests) {
  const auto staged = [](const PeerRequest& request) { return request.host_staged != nullptr; };
  if (std::ranges::any_of(requests, staged)) return std::make_unique<HostStagedTransfers>(communicator, requests);
  return std::make_unique<PointToPoint>(communicator, requests);
}

}  // namespace tutti
