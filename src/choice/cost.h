// Predicts how long a call takes: simulates the plans of all ranks in order of time. There is no formula per algorithm.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "choice/machine.h"
#include "plan/plan.h"

namespace tutti {

/// The conditions under which plans run: equal on all ranks of a communicator.
struct Conditions {
  int cores = 1;                        ///< that its ranks may run on, in total
  int channels = 2;                     ///< for collectives
  int slots = 4;                        ///< per fifo
  std::size_t slot_bytes = 128 * 1024;  ///< size of a slot
  std::vector<int> hosts = {};          ///< by rank; empty: all ranks share memory
  /// GB/s of the links from each rank to each other, by from · ranks + to, where they differ: at most so fast is a copy
  /// between the two; 0, and empty for all: as the machine's numbers say. Of more ranks than are walked through, it is
  /// left out.
  std::vector<double> pair_gbps = {};
  bool operator==(const Conditions&) const = default;
};

/// Predicts the time of calls with one algorithm by simulating every action of every rank. The time of a pass depends
/// on how many bytes it reads and writes, and on their owners. A message, a flag or a call descriptor is seen one hop
/// after it was written. Ranks that share a core take turns. Tiles are simulated until their pace is known.
class Cost {
 public:
  /// `plans`: of all ranks, as they would run; must outlive this.
  Cost(std::span<const Plan> plans, const Machine& machine, const Conditions& conditions);

  /// µs from the first rank's entry to the last one's return, if all enter at once and a group has `group_bytes`. Stops
  /// and returns infinity once the time exceeds `bound_us`.
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
    double ready = 0;  ///< when the next action may begin; infinite: not determined yet
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
  double operand_us(const Plan& plan, const Place& place, bool read) const;
  double pulled_write_us() const;
  std::optional<std::size_t> measured_loop(const Plan& plan, const Action& action) const;
  bool apart(Rank one, Rank other) const;
  double link_us(const Plan& plan, const Place& place, bool read) const;
  double hop_us(Rank one, Rank other) const;
  double message_us(Rank one, Rank other) const;
  void enter();
  double payload_us(const Plan& plan) const;
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
  Core& core_of(Rank rank) { return cores_[core_index_[static_cast<std::size_t>(rank)]]; }
  const Core& core_of(Rank rank) const { return cores_[core_index_[static_cast<std::size_t>(rank)]]; }

  std::span<const Plan> plans_;
  Machine machine_;
  LoopTable loops_;
  std::size_t streamed_bytes_;
  Conditions conditions_;
  std::size_t ranks_;
  double own_groups_ = 0;    ///< number of groups in the buffers of a rank, on average
  double moved_groups_ = 0;  ///< that the busiest rank takes from and gives to others
  double pulling_ = 0;       ///< share of the ranks that pull
  double fifo_peers_ = 0;    ///< number of fifos of the rank that has most
  int items_max_ = 0;        ///< in a message

  // State for one call size.
  std::size_t tiles_ = 1;
  std::size_t walked_ = 1;  ///< number of tiles that are simulated
  double group_bytes_ = 0;
  double block_bytes_ = 0;     ///< of one tile of a part
  std::size_t footprint_ = 0;  ///< by which loops are chosen
  double read_ = 0, write_ = 0, far_read_ = 0, far_write_ = 0, pull_ = 0, write_pulled_ = 0;  ///< µs a byte
  double published_ = 0;                     ///< when the last call descriptor is published
  std::vector<std::vector<double>> prices_;  ///< time of each pass, by rank and action
  std::vector<Core> cores_;
  std::vector<std::size_t> core_index_;  ///< by rank
  std::vector<Channel> channels_;
  std::vector<Fifo> fifos_;
  std::vector<double> committed_at_, released_at_;  ///< by fifo and slot
  std::vector<std::vector<double>> signals_;        ///< by pair: when each signal was raised
  std::vector<std::size_t> taken_;                  ///< by pair
  std::vector<double> lines_at_;                    ///< by rank: when its call descriptor was published
  std::vector<double> tile_done_;                   ///< by tile: when the last rank finished it
};

}  // namespace tutti
