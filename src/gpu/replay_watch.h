// After a communicator is destroyed, graphs of its calls may still be replayed: as long as all ranks do.
#pragma once

#include <memory>
#include <vector>

#include "base/system.h"
#include "cuda/engine.h"
#include "process/peer_process.h"

namespace tutti {

/// Makes replays give up that wait for long once the process of a peer has ended, since nobody watches the peers
/// otherwise. It may have ended after its last replay, so others go on. A Task for the service thread; ends with the
/// last graph.
class ReplayWatch final : public Task {
 public:
  ReplayWatch(System& system, std::weak_ptr<cuda::Engine> engine, std::vector<std::shared_ptr<PeerProcess>> peers)
      : system_(system), engine_(std::move(engine)), peers_(std::move(peers)) {}

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  System& system_;
  const std::weak_ptr<cuda::Engine> engine_;
  const std::vector<std::shared_ptr<PeerProcess>> peers_;
};

}  // namespace tutti
