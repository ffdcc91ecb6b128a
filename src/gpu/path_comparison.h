// By which paths this rank's calls went, for its peers to see, and whether theirs went otherwise.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "call/request.h"
#include "gpu/path_history.h"

namespace tutti {

/// Notes and compares nothing without histories: then no kernel waits for one of another launch.
class PathComparison {
 public:
  /// `rank`: this one.
  explicit PathComparison(Rank rank) : rank_(rank) {}
  /// The histories lie in memory that all ranks share; by rank.
  void compare(std::vector<PathHistory*> calls, std::vector<MessagePathHistory*> messages) {
    calls_ = std::move(calls);
    messages_ = std::move(messages);
  }

  Rank rank() const { return rank_; }

  /// A collective of this rank is queued as a kernel, in a capture or not.
  void note_kernel(bool captured);
  /// A collective of this rank is carried out by the host.
  void note_host() {
    if (!calls_.empty()) calls_[static_cast<std::size_t>(rank_)]->add(/*by_host=*/true);
  }
  /// A send or receive of this rank is queued.
  void note_message(const PeerRequest& request, bool by_host);
  /// It is captured, so nobody knows how often it is made.
  void note_captured(const PeerRequest& request);

  /// A call or message that this rank and a peer have made by different paths: invalid_usage.
  std::optional<Error> difference() const;

 private:
  std::optional<Error> of_messages(Rank peer, bool send) const;
  std::optional<Error> of_calls(Rank peer) const;

  const Rank rank_;
  std::vector<PathHistory*> calls_;
  std::vector<MessagePathHistory*> messages_;
};

}  // namespace tutti
