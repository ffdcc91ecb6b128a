// What one submission asks of one communicator by way of the host: queues copies and waits on the callers' streams,
// while a Batch on the communicator's own host stream carries the calls out.
#pragma once

#include <memory>
#include <vector>

#include "call/operation.h"
#include "gpu/host_staged_call.h"
#include "submit/batch.h"

namespace tutti {

class Stream;

/// Done once all of it is queued; nothing waits for the GPU, but for stages that earlier calls still use. First the
/// sends are queued, then collectives one after another, then receives: so nothing that a stream waits for is behind
/// it.
class HostStagedBatch final : public Operation {
 public:
  /// The communicator has a GPU and is ready for such calls: GpuContext::ready_to_stage.
  explicit HostStagedBatch(std::shared_ptr<Communicator> communicator);
  ~HostStagedBatch() override;

  void add(Request request, const std::shared_ptr<HostStagedCall>& call);
  void add(PeerRequest request, const std::shared_ptr<HostStagedCall>& call);

  void enqueue() override;
  Result<Progress> advance() override;
  Communicator* communicator() override { return communicator_.get(); }

  /// Errors: remote (a rank left), timeout (this thread waits for ranks that it drives itself).
  Result<void> poll_peers() override;
  std::string where() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  struct Item {
    std::shared_ptr<HostStagedCall> call;
    std::uint64_t number = 0;  ///< of collectives, and of receives from one peer
    Rank peer = -1;            ///< of sends and receives
    std::string text;          ///< for messages
    bool begun = false;
  };

  Result<Progress> step();
  Result<bool> begin(Item& item, bool signals);
  Result<Progress> collective(Item& item);
  Result<Progress> receive(Item& item);
  bool awaits(const Item& item, Rank rank) const;
  Result<bool> begin_exchange();
  const Item* next() const;
  Rank missing() const;
  void give_up();

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Stream> proxy_;
  std::unique_ptr<Batch> host_;  // until it is submitted
  std::uint64_t batch_;
  std::vector<Item> sends_, collectives_, receives_;
  bool exchange_begun_ = false;
  bool first_receive_ = true;  ///< nobody has had a turn since the exchange began
  std::size_t next_collective_ = 0, next_receive_ = 0;
  std::int64_t since_ns_ = 0;  // waits for other ranks
};

}  // namespace tutti
