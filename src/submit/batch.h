// What one submission asks of one communicator: collectives one after another, sends and receives beside them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "call/operation.h"
#include "collective/collective_call.h"
#include "collective/point_to_point.h"
#include "gpu/gpu_call.h"
#include "gpu/gpu_peer_call.h"

namespace tutti {

class Batch final : public Operation {
 public:
  explicit Batch(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  ~Batch() override;

  void add(const Request& request) { collectives_.push_back(request); }
  void add(const PeerRequest& request) { peers_.push_back(request); }

  void enqueue() override;
  Result<Progress> advance() override;
  Communicator* communicator() override { return communicator_.get(); }
  Result<void> poll_peers() override;
  std::string where() const override;
  const void* leased() const override { return leased_; }
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  Result<Progress> work();
  Result<Progress> collective();
  void leave();
  void finish_host_staged();
  bool peers_landed();
  bool awaits_gpu() const;
  bool begun() const { return call_ || gpu_call_ || gpu_peer_call_; }

  std::shared_ptr<Communicator> communicator_;
  std::uint64_t ticket_ = 0;  // 0: not enqueued, or left
  std::vector<Request> collectives_;
  std::size_t next_ = 0;
  std::optional<CollectiveCall> call_;
  std::optional<GpuCall> gpu_call_;  // in the place of it, of device memory:
  std::optional<GpuPeerCall> gpu_peer_call_;
  std::vector<PeerRequest> peers_;
  std::optional<PointToPoint> transfers_;
  bool transferred_ = false;
  const void* leased_ = nullptr;  // of the call that was under way at the end
};

}  // namespace tutti
