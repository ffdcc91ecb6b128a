// Segments of peers that are mapped in this process, because a call descriptor named them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/call_history.h"
#include "comm/membership.h"
#include "transport/offer.h"

namespace tutti {

/// Used only by the call whose turn it is. A collective and messages of one group are under way together, so what one
/// of them has got must stay mapped whatever the other one maps or finds to be freed.
class PeerWindows {
 public:
  /// All arguments must outlive this object. `failed` ends the wait for a segment's file descriptor from a peer, as
  /// does the init limit.
  PeerWindows(Process& process, const Membership& members, const std::atomic<bool>& failed);

  /// Maps `bytes` of `peer`'s memory, which `buffer` describes, for a collective: until the next begin_collective for
  /// this peer. nullptr: the memory can only be copied from. `buffer` is passed by value: the peer could change its
  /// descriptor between the check and the use. Errors: remote, system.
  Result<std::byte*> at(Rank peer, BufferDescriptor buffer, std::size_t bytes);
  /// As at, for as long as the result lives: for a message.
  Result<std::shared_ptr<std::byte>> share(Rank peer, BufferDescriptor buffer, std::size_t bytes);

  /// A collective begins, and no other one uses memory of `peer`. Drops the mappings of `peer`'s process if it has
  /// freed segments since the last time. `retired`: its count of freed segments, from a call descriptor.
  void begin_collective(Rank peer, std::uint32_t retired);

 private:
  struct Mapped {
    SegmentName name;
    SharedMapping mapping;
    bool held = false;  ///< by the collective that has begun last
  };
  struct OfPeer {
    std::vector<Mapped> mapped;  ///< the segments that its calls named last: four, or what a collective holds
    std::size_t next = 0;        ///< to be replaced, unless it is held
    std::uint32_t retired = 0;
  };
  static Mapped& place_in(OfPeer& peer);
  /// Requires a peer of another process. Null: it is no segment.
  Result<Mapped*> map(Rank peer, BufferDescriptor buffer, std::size_t bytes);

  Process& process_;
  const Membership& members_;
  const std::atomic<bool>& failed_;
  std::vector<OfPeer> peers_;
};

/// What a rank and its host's other ranks can read of each other's buffers, in communicators of several hosts.
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
