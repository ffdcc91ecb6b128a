// When messages arrive and slots are free again, in a prediction.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "plan/types.h"

namespace tutti {

/// The fifos of each channel, from every rank to every other, each named by its index.
class FifoTimes {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();  ///< or not yet

  void restart(std::size_t channels, std::size_t ranks, std::size_t slots) {
    ranks_ = ranks;
    slots_ = slots;
    fifos_.assign(channels * ranks * ranks, {});
    committed_at_.resize(fifos_.size() * slots);
    released_at_.resize(fifos_.size() * slots);
  }
  std::size_t index(int channel, Rank from, Rank to) const {
    return (static_cast<std::size_t>(channel) * ranks_ + static_cast<std::size_t>(from)) * ranks_ +
           static_cast<std::size_t>(to);
  }

  /// When the sender sees a slot that it may acquire: `hop` after its message was released.
  double slot_at(std::size_t index, double hop) const {
    const Fifo& fifo = fifos_[index];
    if (fifo.acquired < slots_) return 0;
    if (fifo.released + slots_ <= fifo.acquired) return never;
    return released_at_[index * slots_ + fifo.acquired % slots_] + hop;
  }
  /// When the receiver sees the next message: `hop` after it was committed.
  double message_at(std::size_t index, double hop) const {
    const Fifo& fifo = fifos_[index];
    return fifo.committed > fifo.peeked ? committed_at_[index * slots_ + fifo.peeked % slots_] + hop : never;
  }
  void acquire(std::size_t index) { ++fifos_[index].acquired; }
  void commit(std::size_t index, double now) {
    committed_at_[index * slots_ + fifos_[index].committed++ % slots_] = now;
  }
  void peek(std::size_t index) { ++fifos_[index].peeked; }
  void release(std::size_t index, double now) {
    released_at_[index * slots_ + fifos_[index].released++ % slots_] = now;
  }

 private:
  struct Fifo {
    std::size_t acquired = 0, committed = 0, peeked = 0, released = 0;
  };
  std::size_t ranks_ = 0;
  std::size_t slots_ = 0;
  std::vector<Fifo> fifos_;
  std::vector<double> committed_at_, released_at_;  // by fifo and slot
};

}  // namespace tutti
