// Watches the other ranks of a communicator: dead processes, and ranks that failed, aborted or left.
#pragma once

#include <memory>
#include <vector>

#include "base/system.h"
#include "comm/communicator.h"

namespace tutti {

/// A Task of the service thread. A dead process is noticed at once, a failed rank within a tenth of a second; both
/// become the communicator's failure. So does a process of this host that has been stopped for TUTTI_SILENCE_MS while
/// this rank waits in a call, and a call that differs from one of a rank of another host. Ends with the communicator.
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
    std::uint32_t beats = 0;     ///< its last seen,
    std::int64_t silent_ns = 0;  ///<   and for how long that has not changed
  };
  void look_at_process(Communicator& communicator, Watched& watched);
  void look_at_states(Communicator& communicator);
  void beat(Communicator& communicator);
  void look_for_stopped(Communicator& communicator, Watched& watched, std::int64_t passed_ns);
  bool is_stuck(const Communicator& communicator);

  std::weak_ptr<Communicator> communicator_;
  System& system_;
  const std::int64_t silence_ns_;
  std::vector<Watched> processes_;
  std::int64_t looked_ns_ = 0;
  std::uint64_t completed_ = 0;  // calls of this rank, when it was looked at last,
  int looks_ = 0;                // and how often that has been the same since, with a call under way
};

}  // namespace tutti
