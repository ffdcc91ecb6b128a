// Predicts how long a call takes: simulates the plans of all ranks in order of time. There is no formula per algorithm.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "choice/conditions.h"
#include "choice/cores.h"
#include "choice/fifo_times.h"
#include "choice/machine.h"
#include "choice/memory_use.h"
#include "plan/plan.h"

namespace tutti {

/// Predicts the time of calls with one algorithm by simulating every action of every rank. PassPrices says how long a
/// pass takes. A message, a flag or a call descriptor is seen one hop
/// after it was written. Ranks that share a core take turns. Tiles are simulated until their pace is known.
class Cost {
 public:
  /// `plans`: of all ranks, as they would run; must outlive this.
  Cost(std::span<const Plan> plans, const Machine& machine, const Conditions& conditions);

  /// µs from the first rank's entry to the last one's return, if all enter at once and a group has `group_bytes`. Stops
  /// and returns infinity once the time exceeds `bound_us`.
  double us(std::size_t group_bytes, double bound_us = std::numeric_limits<double>::infinity());

  /// Bytes that the busiest rank takes from others and gives to others, for groups of `group_bytes`.
  std::size_t bytes_moved(std::size_t group_bytes) const { return use_.bytes_moved(group_bytes); }

 private:
  struct Channel {
    Rank rank = 0;
    int index = 0;
    std::size_t action = 0;
    std::size_t tile = 0;
    bool done = false;
    double ready = 0;  ///< when the next action may begin; infinite: not determined yet
  };
  void price(std::size_t group_bytes);
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

  std::span<const Plan> plans_;
  Machine machine_;
  LoopTable loops_;
  Conditions conditions_;  // hosts: of all ranks, or none
  std::size_t ranks_;
  MemoryUse use_;
  Cores cores_;

  // State for one call size.
  CallCosts call_;
  std::size_t walked_ = 1;                   // number of tiles that are simulated
  std::vector<std::vector<double>> prices_;  // time of each pass, by rank and action
  std::vector<Channel> channels_;
  FifoTimes fifos_;
  struct Signals {
    std::vector<double> raised;  // when
    std::size_t taken = 0;
  };
  std::vector<Signals> signals_;   // by pair
  std::vector<double> lines_at_;   // by rank: when its call descriptor was published
  std::vector<double> tile_done_;  // by tile: when the last rank finished it
};

}  // namespace tutti
