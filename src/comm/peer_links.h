// By what a rank's calls reach its peers: call descriptors, channels, windows into their memory, and doorbells.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/channels.h"
#include "comm/membership.h"
#include "comm/peer_windows.h"
#include "exec/run.h"
#include "transport/call_descriptor.h"

namespace tutti {

/// For the call whose turn it is.
class PeerLinks {
 public:
  /// As Channels.
  PeerLinks(Process& process, const Membership& members, const CallMark& mark, const CallHistory* history,
            const std::atomic<bool>& failed);

  CallDescriptors& descriptors() { return descriptors_; }
  const CallDescriptors& descriptors() const { return descriptors_; }
  Channels& channels() { return channels_; }
  PeerWindows& windows() { return windows_; }
  /// What a run uses of all this.
  RunContext context();

  /// This rank's own.
  Doorbell& doorbell() { return members_.area->area.header().doorbell; }
  /// The peers'. Any thread.
  void ring_all();
  /// Until when (now_ns) a blocked call may sleep on sockets alone. `awaited`: a peer has yet to open a connection.
  std::int64_t poll_deadline_ns(bool awaited) const;

 private:
  System& system_;
  const Membership& members_;
  const bool oversubscribed_;
  const PassRules pass_rules_;
  CallDescriptors descriptors_;
  Channels channels_;
  PeerWindows windows_;
  std::vector<Doorbell*> doorbells_;  // by rank
  std::vector<Doorbell*> others_;     // the peers'
};

}  // namespace tutti
