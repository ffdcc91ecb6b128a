// Sets up a rank's control connections during the start of a communicator of several hosts. Never blocks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "net/connector.h"

namespace tutti {

class ControlSetup {
 public:
  /// `members` has its peers and arrivals, and must outlive this. `deadline_ns`: when to give up.
  ControlSetup(System& system, const Membership& members, std::int64_t deadline_ns);

  /// True once all connections exist. Errors: timeout, remote (a neighbour that cannot be reached, or did not connect).
  Result<bool> advance();
  /// Valid afterwards. `silence_ns`: see ControlLinks.
  std::shared_ptr<ControlLinks> take(std::int64_t silence_ns);

  /// Adds the handles to wait for; returns the latest time for the next advance.
  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  struct Edge {
    Rank rank = 0;
    std::optional<Connector> connector = {};  // empty: the neighbour connects
    Socket socket = {};
  };
  System& system_;
  const Membership& members_;
  std::int64_t give_up_ns_;
  std::vector<Edge> edges_;
};

}  // namespace tutti
