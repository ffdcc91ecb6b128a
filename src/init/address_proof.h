// At the start of a communicator of several hosts: which of each host's addresses its ranks may use. Never blocks.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "net/reach_proof.h"

namespace tutti {

/// The first rank of each host calls the addresses of all other hosts, for all ranks of its own.
class AddressProof {
 public:
  /// `networks`: by rank, the first rank of its host, or of those that have its network. `members` has its peers, with
  /// the addresses they told, and arrivals.
  AddressProof(Process& process, const Membership& members, std::vector<int> networks);

  /// True once this rank has called whom it is to call.
  bool advance() { return !proof_ || proof_->advance(); }
  std::int64_t poll_set(std::vector<PollItem>& items) const { return proof_->poll_set(items); }

  /// After that, for the others: what was reached.
  Bytes told() const { return proof_ ? proof_->map().encode() : Bytes(); }
  /// From what all ranks told: leaves each of the peers the addresses to use. Logs, at INFO, which are not used and
  /// why. Errors, alike on all ranks: system (a host reaches none of another one's addresses, or a rank has no proven
  /// one), remote.
  Result<void> keep_proven(const std::vector<Bytes>& told, std::vector<Peer>& peers);

 private:
  void log_unused(const std::vector<ReachMap>& maps) const;
  void log_shares(const std::vector<std::vector<std::size_t>>& usable, const ReachMap& map) const;

  Process& process_;
  std::vector<int> networks_;
  std::vector<ReachHost> hosts_;
  std::vector<std::size_t> host_of_;  // by rank
  std::size_t self_ = 0;              // number of this rank's host
  std::optional<ReachProof> proof_;   // of the first rank of a host
};

}  // namespace tutti
