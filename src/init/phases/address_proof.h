// During the start of a communicator of several hosts: finds out which of each host's addresses its ranks may use.
// Never blocks.
#pragma once

#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "net/reach_proof.h"

namespace tutti {

/// The first rank of each host calls the addresses of all other hosts, on behalf of its host's ranks.
class AddressProof {
 public:
  /// `networks`: by rank, the first rank of its host, or of those hosts that share its network. `members` has its
  /// peers, with the addresses they announced, and arrivals.
  AddressProof(Process& process, const Membership& members, std::vector<int> networks);

  /// True once this rank has finished its calls.
  bool advance() { return !proof_ || proof_->advance(); }
  /// Why this process could not call others.
  std::optional<Error> lacked() const { return proof_ ? proof_->lacked() : std::nullopt; }
  std::int64_t poll_set(std::vector<PollItem>& items) const { return proof_->poll_set(items); }

  /// Valid afterwards, to be sent to the others: the addresses that were reached.
  Bytes told() const { return proof_ ? proof_->map().encode() : Bytes(); }
  /// Takes the maps of all ranks and leaves each peer the addresses to use. Logs, at INFO, which are not used and why.
  /// Errors, equal on all ranks: system (a host reaches none of another host's addresses, or a rank has no proven one),
  /// remote.
  Result<void> keep_proven(const std::vector<Bytes>& told, std::vector<Peer>& peers);

 private:
  void log_unused(const std::vector<ReachMap>& maps) const;
  void log_shares(const std::vector<std::vector<std::size_t>>& usable, const ReachMap& map) const;

  Process& process_;
  std::vector<int> networks_;
  std::vector<ReachHost> hosts_;
  std::vector<std::size_t> host_of_;  // by rank
  std::size_t self_ = 0;              // number of this rank's host
  std::optional<ReachProof> proof_;   // only on the first rank of a host
};

}  // namespace tutti
