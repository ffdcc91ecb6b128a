// How long a call takes: the plans of all ranks walked through in the order of time. No formula for any algorithm.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "algorithms/machine.h"
#include "plan/plan.h"

namespace tutti {

/// How plans are run: equal on all ranks of a communicator.
struct Conditions {
  int cores = 1;                            ///< that its ranks may run on, all together
  int channels = 2;                         ///< of collectives
  int slots = 4;                            ///< of each fifo
  std::size_t slot_bytes = 64 * 1024;       ///< of each slot
  std::size_t nontemporal_bytes = 4 << 20;  ///< calls from this size on store past the caches
  bool operator==(const Conditions&) const = default;
};

/// Predicts calls of one algorithm. Steps through every action of every rank: what a pass costs follows from how many
/// bytes it reads and writes and whose they are; a message, a flag or a line is seen one hop after it was written;
/// ranks that share a core take turns. Many tiles are walked through until their pace is known.
class Cost {
 public:
  /// `plans`: of all ranks, as they would be run; must outlive this.
  Cost(std::span<const Plan> plans, const Machine& machine, const Conditions& conditions);

  /// µs from the first rank's entry to the last one's return, where all enter at once and a group has `group_bytes`.
  /// Not looked for any further, and infinite, once it is more than `bound_us`.
  double us(std::size_t group_bytes, double bound_us = std::numeric_limits<double>::infinity());

  /// Bytes that the busiest rank takes from others and gives to others, for groups of `group_bytes`.
  std::size_t bytes_moved(std::size_t group_bytes) const;

 private:
  struct Channel {
    Rank rank = 0;
    int index = 0;
    std::size_t action = 0;
    std::size_t tile = 0;
    bool done = false;
    double ready = 0;  ///< when the next action may begin; infinite: nobody has seen to it yet
  };
  struct Fifo {
    std::size_t acquired = 0, committed = 0, peeked = 0, released = 0;
  };
  struct Core {
    double now = 0;
    Rank rank = -1;
  };

  void price(std::size_t group_bytes);
  double pass_us(const Plan& plan, const Action& action) const;
  double operand_us(const Plan& plan, const Place& place, bool read, bool nontemporal) const;
  void enter();
  double walk(double bound_us);
  Channel* next();
  void run(Channel& channel);
  void act(Channel& channel, const Action& action, double& now);
  double ready_at(const Channel& channel) const;
  void finish_tile(Channel& channel, double now);

  std::size_t index(const Channel& channel, Rank from, Rank to) const {
    return (static_cast<std::size_t>(channel.index) * ranks_ + static_cast<std::size_t>(from)) * ranks_ +
           static_cast<std::size_t>(to);
  }
  Core& core_of(Rank rank) { return cores_[static_cast<std::size_t>(rank) % cores_.size()]; }
  const Core& core_of(Rank rank) const { return cores_[static_cast<std::size_t>(rank) % cores_.size()]; }

  std::span<const Plan> plans_;
  Machine machine_;
  Conditions conditions_;
  std::size_t ranks_;
  double own_groups_ = 0;    ///< groups in the buffers of the rank that has most
  double moved_groups_ = 0;  ///< that the busiest rank takes from and gives to others
  double fifo_peers_ = 0;    ///< fifos of the rank that has most
  int items_max_ = 0;        ///< in a message

  // Of one call size.
  std::size_t tiles_ = 1;
  std::size_t walked_ = 1;  ///< of them
  double block_bytes_ = 0;  ///< of one tile of a part
  bool nontemporal_ = false;
  double read_ = 0, write_ = 0, far_read_ = 0, far_write_ = 0;  ///< µs a byte
  double published_ = 0;                                        ///< when the last call descriptor is
  std::vector<std::vector<double>> prices_;                     ///< of passes, by rank and action
  std::vector<Core> cores_;
  std::vector<Channel> channels_;
  std::vector<Fifo> fifos_;
  std::vector<double> committed_at_, released_at_;  ///< by fifo and slot
  std::vector<std::vector<double>> signals_;        ///< by pair: when raised
  std::vector<std::size_t> taken_;                  ///< by pair
  std::vector<double> lines_at_;                    ///< by rank: when its line was published
  std::vector<double> tile_done_;                   ///< by tile, the last rank
};

}  // namespace tutti
