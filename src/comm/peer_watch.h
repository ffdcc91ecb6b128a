// Watches the peers of a communicator: ended processes, and ranks that failed, aborted or left.
#pragma once

#include <memory>
#include <vector>

#include "base/system.h"
#include "comm/communicator.h"
#include "comm/loss.h"

namespace tutti {

/// A Task of the service thread, which ends with the communicator, or with its failure where all ranks share memory.
/// Marks peers whose processes have ended (noticed at once) or that have failed (noticed within a tenth of a second),
/// and tells the peers of other hosts. The communicator fails because of them if this rank is in a collective that they
/// had not completed, or if their failure ends it for all. Otherwise it goes on: collectives that they had completed
/// succeed, later ones fail when they begin, and sends and receives find out themselves whether they need them. Also
/// fails the communicator if a process of this host has been stopped for TUTTI_SILENCE_MS while this rank waits in a
/// call or ranks of other hosts may wait, if the network to a rank that lives loses large packets, or if a call differs
/// from a call of a rank of another host.
class PeerWatch final : public Task {
 public:
  explicit PeerWatch(const std::shared_ptr<Communicator>& communicator);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  /// A process of this host, and its ranks that have not left.
  struct Watched {
    std::uint64_t token = 0;
    std::shared_ptr<PeerProcess> process;
    std::vector<Rank> ranks;
    SignsOfLife life = {};
    std::uint32_t last_beats = 0;  ///< of AreaHeader::beats, for check_exec
    int quiet_looks = 0;
    int unserved_looks = 0;  // at which nobody answered for it
  };
  bool lacks_descriptors(const Communicator& communicator) const;
  void check_exec(Communicator& communicator, Watched& watched) const;
  void mark_all(Communicator& communicator, Watched& watched, bool mute = false) const;
  void check_ranks(Communicator& communicator) const;
  void send_local_ends(const Communicator& communicator);
  static void take_remote_ends(Communicator& communicator);
  bool ends_all(const Communicator& communicator, Rank rank) const;
  void beat(Communicator& communicator);
  void check_stopped(Communicator& communicator, Watched& watched, std::int64_t passed_ns) const;
  bool is_stuck(Communicator& communicator);
  void check_large_packets(Communicator& communicator);

  std::weak_ptr<Communicator> communicator_;
  System& system_;
  const std::int64_t silence_ns_;
  std::vector<Watched> processes_;
  RankSet told_;               // ranks of this host that are gone, as the other hosts have been told
  std::size_t ends_seen_ = 0;  // of ControlLinks::ends_known
  std::int64_t looked_ns_ = 0;
  std::int64_t looked_at_wires_ns_ = 0;
  std::uint64_t completed_ = 0;  // completed calls of this rank at the last look,
  int looks_ = 0;                // and number of looks since it changed, with a call under way
};

}  // namespace tutti
