// The calls of one submission on one communicator: collectives one after another, and concurrently sends and receives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

class Batch final : public Operation {
 public:
  explicit Batch(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)), limit_(communicator_->waits().limit()) {}
  ~Batch() override;

  void add(const Request& request) { requests_.push_back(request); }
  void add(const PeerRequest& request) { peers_.push_back(request); }

  void enqueue() override;
  Result<Progress> advance() override;
  Communicator* communicator() override { return communicator_.get(); }
  std::optional<CallLimit> limit() const override { return limit_; }
  Result<void> poll_peers() override;
  std::string where() const override;
  Rank waits_for() const override;
  const void* leased() const override { return leased_; }
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  Result<Progress> work();
  Result<Progress> collective();
  Result<Progress> transfer();
  void leave();
  bool takes_turn() const;
  bool may_transfer() const;
  bool awaits_gpu() const;

  std::shared_ptr<Communicator> communicator_;
  CallLimit limit_;
  std::uint64_t ticket_ = 0;  // 0: not enqueued, or left
  std::vector<Request> requests_;
  std::size_t next_ = 0;
  HeldOperation collective_;  // for requests_[next_], once it has begun
  std::vector<PeerRequest> peers_;
  HeldOperation transfers_;  // for all of peers_
  bool transferred_ = false;
  const void* leased_ = nullptr;  // see Operation::leased; of the call under way when the batch ended
};

}  // namespace tutti
