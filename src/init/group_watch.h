// Whether ranks of a communicator, the parent, can still become a communicator of their own.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/system.h"
#include "comm/communicator.h"
#include "comm/loss.h"

namespace tutti {

/// A Task of the service thread, which sees members end, stop, abort or fail while they meet at a root that may never
/// hear of it. What happens to other ranks of the parent does not matter, even if the parent fails by it, or has
/// failed.
class GroupWatch final : public Task {
 public:
  /// `members`: ranks of the parent, which lives longer than the watch is on the service thread.
  GroupWatch(Communicator& parent, std::vector<Rank> members);

  /// Errors: why the members cannot meet. Any thread.
  Result<void> look() const;
  /// As look, once the reason has been known for a while: what members sent before they left may have yet to arrive,
  /// and the root may know more. At once if this rank itself has aborted the parent. Any thread.
  Result<void> check_patiently() const;

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  bool concerns(Code code, int culprit) const;
  std::optional<Error> failed_here() const;
  std::optional<Error> failed_there(Rank rank) const;
  std::optional<Error> ended(Rank rank) const;
  std::optional<Error> stopped(Rank rank, SignsOfLife& life, std::int64_t passed_ns) const;
  std::optional<Error> find(std::int64_t passed_ns);

  Communicator& parent_;
  System& system_;
  const std::vector<Rank> members_;
  const std::int64_t silence_ns_;
  std::vector<SignsOfLife> lives_;  ///< of the members
  std::int64_t looked_ns_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::optional<Error> found_;
  std::int64_t found_ns_ = 0;
};

}  // namespace tutti
