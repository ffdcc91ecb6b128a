// Fifos through slots in shared memory, for threads of one process and for processes of one host.
#pragma once

#include "base/system.h"
#include "transport/fifo.h"
#include "transport/rank_area.h"

namespace tutti {

/// If a peer writes nonsense into the counters or lengths, this end reports an error (remote) and never accesses memory
/// out of bounds. Slots lie in the receiver's area, the count of freed slots in the sender's: each side spins on its
/// own memory.
class ShmSender final : public Sender {
 public:
  /// `rank` sends to `peer` on `channel`. `oversubscribed`: see Doorbell.
  ShmSender(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
            bool oversubscribed);

  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override;
  Result<bool> settled() override;
  std::size_t slot_bytes() const override { return slot_bytes_; }

 private:
  Result<void> look();

  System& system_;
  RankArea theirs_;
  int rank_;
  int peer_;
  int channel_;
  bool oversubscribed_;
  std::size_t slot_bytes_;
  std::uint64_t slots_;
  const Flag* freed_;
  Flag* filled_;
  Doorbell* doorbell_;
  std::uint64_t sent_ = 0;
  // last value read from freed_: its cache line is read again only when this value does not suffice
  std::uint64_t freed_seen_ = 0;
};

class ShmReceiver final : public Receiver {
 public:
  ShmReceiver(System& system, const RankArea& mine, int rank, const RankArea& theirs, int peer, int channel,
              bool oversubscribed);

  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Result<void> release() override;

 private:
  System& system_;
  RankArea mine_;
  int peer_;
  int channel_;
  bool oversubscribed_;
  std::size_t slot_bytes_;
  std::uint64_t slots_;
  const Flag* filled_;
  Flag* freed_;
  Doorbell* doorbell_;
  std::uint64_t taken_ = 0;
  std::uint64_t filled_seen_ = 0;
};

}  // namespace tutti
