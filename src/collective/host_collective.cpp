#include "collective/host_collective.h"

#include "collective/collective_across_hosts.h"
#include "collective/collective_inside_host.h"

namespace tutti {

void make_host_collective(HeldOperation& made, Communicator& communicator, const Request& request,
                          std::uint64_t published) {
  if (communicator.spans_hosts()) return made.emplace<CollectiveAcrossHosts>(communicator, request);
  made.emplace<CollectiveInsideHost>(communicator, request, published);
}

std::unique_ptr<Operation> make_host_collective(Communicator& communicator, const Request& request) {
  if (communicator.spans_hosts()) return std::make_unique<CollectiveAcrossHosts>(communicator, request);
  return std::make_unique<CollectiveInsideHost>(communicator, request);
}

}  // namespace tutti
