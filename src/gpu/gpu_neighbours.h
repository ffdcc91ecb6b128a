// The ranks of a communicator that are in this rank's process and on its GPU: their streams may hold each other up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/stream_order.h"

namespace tutti {

class GpuNeighbours {
 public:
  /// `by_rank`: whether it is one; true for `rank`, this one. Enters it into the order that neighbours share.
  GpuNeighbours(Rank rank, std::vector<bool> by_rank, std::shared_ptr<StreamOrder> order)
      : rank_(rank), by_rank_(std::move(by_rank)), received_(by_rank_.size()), order_(std::move(order)) {
    order_->enter(rank_);
  }

  bool contain(Rank rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(by_rank_.size()); }  ///< of the communicator
  StreamOrder& order() const { return *order_; }
  /// Counts a collective that the host need not queue: neighbours number all collectives alike.
  void count_collective() { order_->collective(rank_, /*host_staged=*/false); }
  /// The number of this rank's next receive from `peer`, which matches the send with the same number.
  std::uint64_t next_receive(Rank peer) { return ++received_[static_cast<std::size_t>(peer)]; }

 private:
  const Rank rank_;
  std::vector<bool> by_rank_;
  std::vector<std::uint64_t> received_;
  std::shared_ptr<StreamOrder> order_;
};

}  // namespace tutti
