// Which ranks know why a start has failed, and how long the root goes on telling it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {

/// From the root's point of view. Ranks that come after the failure are told too. No sockets and no clock here.
class FailedStart {
 public:
  static constexpr std::int64_t farewell_ns = 2'000'000'000;  ///< for a rank to read why the start failed

  /// Requires that the start has not failed yet. `limit_ns`: time by which all were to be here.
  void begin(Error why, int ranks, std::int64_t limit_ns, std::int64_t now_ns) {
    why_ = std::move(why);
    expect(ranks);
    failed_ns_ = now_ns;
    end_ns_ = std::max(limit_ns, now_ns) + farewell_ns;
  }
  /// None: the start has not failed.
  const std::optional<Error>& why() const { return why_; }

  /// So many ranks are to be told, as far as one of them has said it.
  void expect(int ranks) { ranks_ = std::max(ranks_, ranks); }
  /// The rank needs not be told any more. Also before the start fails.
  void told(int rank) { told_.insert(rank); }
  /// When all ranks have been told or are lost, one may remain whose connection broke before it got the message and
  /// that calls again at once.
  void end_soon_if_all_told(std::int64_t now_ns) {
    if (why_ && all_told()) end_ns_ = std::min(end_ns_, now_ns + farewell_ns);
  }

  bool over(std::int64_t now_ns) const { return now_ns >= end_ns_; }
  /// Whether the end of the process waits for ranks on their way that do not know why. Ranks that have not come within
  /// the limit of the start are not on their way.
  bool lingers(std::int64_t now_ns) const {
    return why_ && why_->code != Code::timeout && !all_told() && now_ns < failed_ns_ + linger_ns;
  }
  /// The latest time to look again.
  std::int64_t wake_ns(bool lingers) const { return lingers ? std::min(end_ns_, failed_ns_ + linger_ns) : end_ns_; }

 private:
  static constexpr std::int64_t linger_ns = 3'000'000'000;
  bool all_told() const { return ranks_ > 0 && told_.size() >= static_cast<std::size_t>(ranks_); }

  std::optional<Error> why_;
  std::set<int> told_;
  int ranks_ = 0;
  std::int64_t failed_ns_ = 0;
  std::int64_t end_ns_ = 0;
};

/// Why ranks of the root's own process cannot take part, and whether the process has to wait for the root. Between the
/// threads of the ranks and the one that advances the root. Any thread.
class LocalExcuses {
 public:
  /// `linger`: see BootstrapRoot::awaited.
  void add(Excused said, bool linger) {
    const std::lock_guard lock(mutex_);
    said_.push_back(std::move(said));
    if (!linger) others_know_ = true;
    await();
  }
  /// Those since the last time.
  std::vector<Excused> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(said_, {});
  }
  /// Whether others know the reason of a failure by other ways.
  bool others_know() const { return others_know_; }

  /// The process has to wait for the root until `wait_only_if` says otherwise.
  void await() { awaited_.store(true, std::memory_order_relaxed); }
  void wait_only_if(bool needed) {
    const std::lock_guard lock(mutex_);
    awaited_.store(needed || !said_.empty(), std::memory_order_relaxed);
  }
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> others_know_ = false;
  std::atomic<bool> awaited_ = false;
  std::mutex mutex_;  ///< guards what follows
  std::vector<Excused> said_;
};

}  // namespace tutti::bootstrap
