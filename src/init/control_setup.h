// Brings up a rank's control connections when a communicator of several hosts starts. Never blocks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "net/connector.h"

namespace tutti {

class ControlSetup {
 public:
  /// `members` has its peers and arrivals, and must outlive this. `deadline_ns`: when it gives up.
  ControlSetup(System& system, const Membership& members, std::int64_t deadline_ns);

  /// True once all are there. Errors: timeout, remote (a neighbour that cannot be reached, or did not connect).
  Result<bool> advance();
  /// After that. `silence_ns`: see ControlLinks.
  std::shared_ptr<ControlLinks> take(std::int64_t silence_ns);

  /// Adds the handles to wait for; returns when to come back at the latest.
  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  struct Edge {
    Rank rank = 0;
    std::optional<Connector> connector = {};  // nothing: the neighbour connects
    Socket socket = {};
  };
  System& system_;
  const Membership& members_;
  std::int64_t give_up_ns_;
  std::vector<Edge> edges_;
};

}  // namespace tutti
