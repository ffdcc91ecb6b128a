// What a rank and its host's other ranks can read of each other's buffers, in communicators of several hosts.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/call_history.h"
#include "comm/peer_windows.h"
#include "transport/offer.h"

namespace tutti {

/// Segments (tuttiMemAlloc), which peers map; for ranks of one process any memory; and other memory where peers copy it
/// by CMA in less time than through a slot, by the numbers of the machine.
class PeerMemoryWindows final : public OfferedMemory {
 public:
  /// `mark`: the call that the rank is in. All arguments must outlive this object; see PeerWindows.
  PeerMemoryWindows(Process& process, const Membership& members, const CallMark& mark, const std::atomic<bool>& failed);

  std::optional<Offer> describe(int peer, std::span<const std::byte> memory) const override;
  bool reads(int peer) override;
  Result<OfferedBlock> find(int peer, const Offer& offer) override;

 private:
  bool pulling_pays(std::size_t bytes) const;
  void check_rights() const;

  Process& process_;
  const Membership& members_;
  const CallMark& mark_;
  PeerWindows windows_;
  bool maps_;                   // TUTTI_TRANSPORT does not ask for CMA alone
  bool pulls_;                  // every rank may copy from every process, and TUTTI_TRANSPORT does not forbid it
  double spared_us_of_a_byte_;  // by pulling it, against copying it through a slot
  // Whether this rank still has the rights of the start, as far as it has looked.
  mutable std::uint64_t looked_ = 0;
  mutable bool own_maps_ = true;
  mutable bool own_pulls_ = true;
  std::vector<std::uint64_t> calls_;  // by peer: the last call in which it offered something
};

}  // namespace tutti
