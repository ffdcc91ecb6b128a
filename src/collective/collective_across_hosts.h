// The protocol of a collective whose ranks do not all share memory. All data goes as messages through the channels, and
// the first message of the call on each connection carries the call's signature (net/signed_fifo.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "call/operation.h"
#include "collective/collective_run.h"
#include "collective/exchanged_counts.h"
#include "comm/peer_failure.h"

namespace tutti {

class CollectiveAcrossHosts final : public Operation {
 public:
  /// Both must outlive the operation. The request's turn must have come.
  CollectiveAcrossHosts(Communicator& communicator, const Request& request)
      : communicator_(communicator), request_(request), run_(communicator, request) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: remote (a rank left, failed or ended).
  Result<void> poll_peers() override;

  std::string where() const override;
  Rank waits_for() const override;
  void abandon(const Error& reason) override { communicator_.fail(reason); }
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  enum class State { enter, counts, run, done };

  Result<Progress> enter();
  Result<Progress> exchange_counts();
  Result<Progress> start();
  Result<Progress> after(Result<Progress> moved);
  Coming coming_from(Rank rank) const;
  std::optional<Error> stalled_by_loss() const;

  Communicator& communicator_;
  const Request& request_;
  CollectiveRun run_;
  State state_ = State::enter;
  std::optional<ExchangedCounts> counts_;  // while they are exchanged
  Stall stall_;
};

}  // namespace tutti
