// Calls on device memory that the host carries out, as operations: each begins when its input has landed on the host.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "call/operation.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/host_staged_call.h"

namespace tutti {

/// One collective: on copies of its buffers, or by kernels that the host lets go. When it is done, the caller's stream
/// goes on; whoever drops it before finishes the request's DeviceCall.
class HostStagedCollective final : public Operation {
 public:
  /// All three must outlive it.
  HostStagedCollective(Communicator& communicator, Request& request, HostStagedCall& staged)
      : communicator_(communicator), request_(request), staged_(staged) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  Result<void> poll_peers() override;
  std::string where() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;
  void abandon(const Error& reason) override;

 private:
  Communicator& communicator_;
  Request& request_;
  HostStagedCall& staged_;
  std::unique_ptr<Operation> call_;  // once the input is here
};

/// The sends and receives of one group: all begin when the inputs of all are here.
class HostStagedTransfers final : public Operation {
 public:
  /// Both must outlive it.
  HostStagedTransfers(Communicator& communicator, std::span<PeerRequest> requests)
      : communicator_(communicator), requests_(requests) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  Result<void> poll_peers() override;
  std::string where() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  bool landed();

  Communicator& communicator_;
  std::span<PeerRequest> requests_;
  std::unique_ptr<Operation> transfers_;  // once all inputs are here
};

}  // namespace tutti
