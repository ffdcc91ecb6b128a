// Whether and why a communicator has failed, as its rank knows it, and which of its ranks are gone.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "comm/gone_ranks.h"

namespace tutti {

/// Any thread, where nothing else is said.
class CommFailure {
 public:
  explicit CommFailure(int ranks) : gone_(ranks) {}

  /// Sets the failure and returns it; null if there is one already. `tell`: called with the failure, under the lock and
  /// before anybody sees it by `happened`.
  template <class Tell>
  const Error* set(Error error, Tell&& tell) {
    const std::lock_guard lock(mutex_);
    if (error_) return nullptr;
    error_ = std::make_unique<Error>(std::move(error));
    tell(*error_);
    happened_.store(true, std::memory_order_release);
    return error_.get();
  }
  const std::atomic<bool>& happened() const { return happened_; }
  /// The first failure. Requires happened().
  Error error() const {
    const std::lock_guard lock(mutex_);
    return *error_;
  }

  /// Notes that a peer is gone, although it has completed calls that this rank has not: these calls do not fail, so
  /// there is no failure yet. Only the first counts. `at_rest`: no call is under way.
  void note_loss(Error error, bool at_rest) {
    const std::lock_guard lock(mutex_);
    if (loss_) return;
    if (at_rest) lost_at_rest_.store(true, std::memory_order_relaxed);
    loss_ = std::make_unique<Error>(std::move(error));
  }
  bool lost_at_rest() const { return lost_at_rest_.load(std::memory_order_relaxed); }
  /// The failure or, where there is none, the first loss that was noted.
  std::optional<Error> error_or_loss() const {
    const std::lock_guard lock(mutex_);
    const auto& known = error_ ? error_ : loss_;
    return known ? std::optional(*known) : std::nullopt;
  }
  /// As error_or_loss, of a rank that leaves and that this keeps from checking its calls. For the thread that has the
  /// communicator.
  std::optional<Error> leave() {
    auto known = error_or_loss();
    if (known) left_after_loss_ = true;
    return known;
  }
  bool left_after_loss() const { return left_after_loss_; }

  /// Notes that the user gets the failure as the result of a call.
  void mark_reported() { reported_.store(true, std::memory_order_relaxed); }
  bool reported() const { return reported_.load(std::memory_order_relaxed); }

  GoneRanks& gone() { return gone_; }
  const GoneRanks& gone() const { return gone_; }

 private:
  std::atomic<bool> happened_ = false;
  std::atomic<bool> reported_ = false;
  std::atomic<bool> lost_at_rest_ = false;
  bool left_after_loss_ = false;
  mutable std::mutex mutex_;
  std::unique_ptr<Error> error_;
  std::unique_ptr<Error> loss_;
  GoneRanks gone_;
};

}  // namespace tutti
