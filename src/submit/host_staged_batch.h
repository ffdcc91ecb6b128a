// The calls of one submission on one communicator whose streams wait for the host: queues their parts on the callers'
// streams, while a Batch on the communicator's proxy (a host stream) carries the calls out.
#pragma once

#include <memory>
#include <vector>

#include "call/operation.h"
#include "gpu/stream_call.h"
#include "submit/batch.h"

namespace tutti {

class Stream;

/// Done once all calls are queued. Never waits for the GPU, except for bounce buffers that earlier calls still use.
/// Queues the sends first, then the collectives one after another, then the receives, so that no stream waits for work
/// queued behind the wait.
class HostStagedBatch final : public Operation {
 public:
  /// The communicator must have a GPU and be ready for such calls: see Staging::make.
  explicit HostStagedBatch(std::shared_ptr<Communicator> communicator);
  ~HostStagedBatch() override;

  void add(const Request& request);
  void add(const PeerRequest& request);

  void enqueue() override;
  Result<Progress> advance() override;
  Communicator* communicator() override { return communicator_.get(); }

  /// Errors: remote (a rank left), timeout (this thread waits for a rank that it drives itself).
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  struct Item {
    std::shared_ptr<StreamCall> call;
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
  bool first_receive_ = true;  ///< no other operation has been advanced since the exchange began
  std::size_t next_collective_ = 0, next_receive_ = 0;
  std::int64_t since_ns_ = 0;  // has waited for other ranks since then
};

}  // namespace tutti
