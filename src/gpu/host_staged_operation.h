// Operations for calls on device memory that the host carries out. Each begins when its input is in host memory.
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

/// One collective, on copies of its buffers or by kernels that the host releases. When it is done, the caller's stream
/// goes on. Code that destroys the operation earlier must call finish() on the request's DeviceCall.
class HostStagedCollective final : public Operation {
 public:
  /// All three must outlive the operation.
  HostStagedCollective(Communicator& communicator, Request& request, HostStagedCall& staged)
      : communicator_(communicator), request_(request), staged_(staged) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;
  void abandon(const Error& reason) override;

 private:
  Communicator& communicator_;
  Request& request_;
  HostStagedCall& staged_;
  std::unique_ptr<Operation> call_;  // made once the input is in host memory
};

/// The sends and receives of one group. All begin when the inputs of all of them are in host memory.
class HostStagedTransfers final : public Operation {
 public:
  /// Both must outlive the operation.
  HostStagedTransfers(Communicator& communicator, std::span<PeerRequest> requests)
      : communicator_(communicator), requests_(requests) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  bool landed();

  Communicator& communicator_;
  std::span<PeerRequest> requests_;
  std::unique_ptr<Operation> transfers_;  // made once all inputs are in host memory
};

}  // namespace tutti
