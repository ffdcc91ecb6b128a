// Fifos through slots in shared memory, for threads of one process and for processes of one host.
#pragma once

#include "base/system.h"
#include "transport/fifo.h"
#include "transport/offer.h"
#include "transport/rank_area.h"

namespace tutti {

/// What both ends have.
class ShmEnd {
 protected:
  ShmEnd(System& system, const RankArea& theirs, int peer, int channel, bool oversubscribed)
      : system_(system),
        theirs_(theirs),
        peer_(peer),
        channel_(channel),
        oversubscribed_(oversubscribed),
        slot_bytes_(theirs.shape().slot_bytes),
        slots_(theirs.shape().slots) {}
  void ring() { theirs_.header().doorbell.ring(system_, oversubscribed_); }

  System& system_;
  RankArea theirs_;
  int peer_;
  int channel_;
  bool oversubscribed_;
  std::size_t slot_bytes_;
  std::uint64_t slots_;
};

/// If a peer writes nonsense into the counters or lengths, this end reports an error (remote) and never accesses memory
/// out of bounds. Slots lie in the receiver's area, the count of freed slots in the sender's: each side spins on its
/// own memory.
///
/// With `memory`, blocks can be offered. The head of a slot tells in which of its pieces, a 32nd of the slot each, an
/// Offer lies instead of the block that begins there.
class ShmSender final : public Sender, public Offering, ShmEnd {
 public:
  /// `rank` sends to `peer` on `channel`. `oversubscribed`: see Doorbell. `memory`: null: nothing can be offered.
  ShmSender(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
            bool oversubscribed, const OfferedMemory* memory = nullptr);

  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override;
  /// True when the peer has released all messages with offers.
  Result<bool> flush() override;
  Result<Settled> settled() override;
  std::size_t slot_bytes() const override { return slot_bytes_; }
  Offering* offering() override { return memory_ != nullptr ? this : nullptr; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override;
  bool keep(std::span<const std::byte> memory) override;
  bool copies_offers() const override { return false; }

 private:
  Result<void> look();
  void drop_read();
  bool is_wanted(std::uint64_t message) const;
  void fill_wanted();

  int rank_;
  const Flag* freed_;
  Flag* filled_;
  std::uint64_t sent_ = 0;
  // last value read from freed_: its cache line is read again only when this value does not suffice
  std::uint64_t freed_seen_ = 0;
  const OfferedMemory* memory_;
  PendingOffers offers_;
};

class ShmReceiver final : public Receiver, public Offers, ShmEnd {
 public:
  ShmReceiver(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
              bool oversubscribed, OfferedMemory* memory = nullptr);

  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Offers* offers() override { return this; }  // without `memory` an offer is an error
  Result<OfferedBlock> offered(std::size_t at) override;
  Result<void> release() override;
  Result<void> refuse() override;

 private:
  RankArea mine_;
  const Flag* filled_;
  Flag* freed_;
  std::uint64_t taken_ = 0;
  std::uint64_t filled_seen_ = 0;
  OfferedMemory* memory_;
  std::uint32_t pieces_ = 0;  // of the peeked slot, which hold offers
};

}  // namespace tutti
