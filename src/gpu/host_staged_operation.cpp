#include "gpu/host_staged_operation.h"

#include <fmt/format.h>

#include "collective/host_collective.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_context.h"
#include "gpu/gpu_peer_call.h"
#include "gpu/gpu_poll.h"

namespace tutti {
namespace {

std::string not_come(const Communicator& communicator) {
  return fmt::format("a call that GPU {} has not reached yet", gpu_context(communicator)->gpu->ordinal());
}

}  // namespace

Result<Progress> HostStagedCollective::advance() {
  if (!call_) {
    if (!staged_.landed()) return Progress::blocked;
    if (staged_.peers() != nullptr) {
      call_ = std::make_unique<GpuPeerCall>(communicator_, request_, staged_);
    } else {
      request_.input = staged_.input();
      request_.output = staged_.output();
      call_ = make_host_collective(communicator_, request_);
    }
  }
  auto progress = call_->advance();
  if (progress && *progress == Progress::done) staged_.finish();
  return progress;
}

Result<void> HostStagedCollective::poll_peers() {
  return call_ ? call_->poll_peers() : Result<void>();
}

Rank HostStagedCollective::waits_for() const {
  return call_ ? call_->waits_for() : -1;
}

std::string HostStagedCollective::where() const {
  return call_ ? call_->where() : not_come(communicator_);
}

std::int64_t HostStagedCollective::poll_set(std::vector<PollItem>& items) const {
  return call_ ? call_->poll_set(items) : next_gpu_poll_ns(communicator_);
}

void HostStagedCollective::abandon(const Error& reason) {
  if (call_) call_->abandon(reason);
}

bool HostStagedTransfers::landed() {
  for (PeerRequest& request : requests_) {
    if (!request.device) continue;
    std::byte* const buffer = request.device->transfer_buffer();
    if (buffer == nullptr) return false;
    request.data = buffer;
  }
  return true;
}

Result<Progress> HostStagedTransfers::advance() {
  if (!transfers_) {
    if (!landed()) return Progress::blocked;
    transfers_ = std::make_unique<PointToPoint>(communicator_, requests_);
  }
  return transfers_->advance();
}

Result<void> HostStagedTransfers::poll_peers() {
  return transfers_ ? transfers_->poll_peers() : Result<void>();
}

Rank HostStagedTransfers::waits_for() const {
  return transfers_ ? transfers_->waits_for() : -1;
}

std::string HostStagedTransfers::where() const {
  return transfers_ ? transfers_->where() : not_come(communicator_);
}

std::int64_t HostStagedTransfers::poll_set(std::vector<PollItem>& items) const {
  return transfers_ ? transfers_->poll_set(items) : next_gpu_poll_ns(communicator_);
}

}  // namespace tutti
