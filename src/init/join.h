// How a rank joins a communicator: a state machine, so that one thread can start several ranks.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "call/operation.h"
#include "comm/communicator.h"
#include "init/phases/facts.h"
#include "init/phases/phase.h"

namespace tutti {

/// Goes through the phases of a start (init/phases/phases.h), one after another.
class Join final : public Operation {
 public:
  /// `exchange`: how the ranks exchange what they must know of each other, if they have a way already; null: they meet
  /// at the root of the id. Must outlive this object. Ranks that have a way have the same settings.
  Join(Process& process, JoinOptions options, Exchange* exchange = nullptr);
  /// One that was not advanced even once tells the others that it does not come.
  ~Join() override;

  /// Tells the others why this rank does not go on. To be destroyed next. Does not wait.
  void give_up(const Error& why);

  Result<Progress> advance() override;
  Communicator* communicator() override { return nullptr; }
  WhileWaiting while_waiting() const override { return facts_.options.while_waiting; }

  std::int64_t poll_set(std::vector<PollItem>& items) const override;

  /// Valid after `done`.
  std::shared_ptr<Communicator> take() { return std::move(made_); }

 private:
  enum class State { not_begun, under_way, over };
  Result<Progress> begin();
  Result<Progress> next_phase();
  Error cannot_join(Error why);
  Result<void> finish();

  const int pid_;  ///< a forked child's copy is no rank
  const PendingCloses::Joining joining_;
  const std::int64_t deadline_ns_;
  const std::unique_ptr<Bootstrap> bootstrap_;  ///< null: the ranks have a way of their own
  start::Facts facts_;
  const std::vector<std::unique_ptr<start::Phase>> phases_;
  std::size_t phase_ = 0;
  State state_ = State::not_begun;
  std::shared_ptr<Communicator> made_;
};

}  // namespace tutti
