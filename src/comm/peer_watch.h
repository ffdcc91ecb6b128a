// Watches the other ranks of a communicator: dead processes, and ranks that failed, aborted or left.
#pragma once

#include <memory>
#include <vector>

#include "base/system.h"
#include "comm/communicator.h"

namespace tutti {

/// A Task of the service thread. A dead process is noticed at once (pidfd), a failed rank within a tenth of a second;
/// both become the communicator's failure. So does a call that differs from one of a rank of another host: who gets on
/// with a call no more tells the last ones, and whoever hears that compares them. Ends with the communicator.
class PeerWatch final : public Task {
 public:
  explicit PeerWatch(const std::shared_ptr<Communicator>& communicator);

  bool advance() override;
  std::int64_t interests(std::vector<PollItem>& items) override;

 private:
  struct Watched {
    std::shared_ptr<const UniqueFd> pidfd;
    int pid = 0;
    std::vector<Rank> ranks;
  };
  void look_at_process(Communicator& communicator, Watched& watched);
  void look_at_states(Communicator& communicator);
  void look_at_calls(Communicator& communicator);

  std::weak_ptr<Communicator> communicator_;
  System& system_;
  std::vector<Watched> processes_;
  std::uint64_t last_call_ = 0;        // of this rank, when it was looked at last,
  int looks_ = 0;                      // and how often it has been the same since
  std::vector<PeerCalls> to_compare_;  // calls that peers are in, and this rank is not yet
};

}  // namespace tutti
