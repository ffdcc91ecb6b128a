// What a rank and its host's other ranks can read of each other's buffers, in communicators of several hosts.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/call_history.h"
#include "comm/peer_windows.h"
#include "transport/offer.h"

namespace tutti {

/// Segments (tuttiMemAlloc), and for ranks of one process any memory.
class PeerMemoryWindows final : public OfferedMemory {
 public:
  /// `mark`: the call that the rank is in. All arguments must outlive this object; see PeerWindows.
  PeerMemoryWindows(Process& process, const Membership& members, const CallMark& mark, const std::atomic<bool>& failed)
      : process_(process),
        members_(members),
        mark_(mark),
        windows_(process, members, failed),
        calls_(members.peers.size()) {}

  std::optional<Offer> describe(int peer, std::span<const std::byte> memory) const override;
  Result<std::span<const std::byte>> find(int peer, const Offer& offer) override;

 private:
  Process& process_;
  const Membership& members_;
  const CallMark& mark_;
  PeerWindows windows_;
  std::vector<std::uint64_t> calls_;  // by peer: the last call in which it offered something
};

}  // namespace tutti
