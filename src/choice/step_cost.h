// Predicts how long a call of many ranks takes, from what a few of them do in each step.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "algorithms/algorithm.h"
#include "choice/cost.h"
#include "choice/step_work.h"

namespace tutti {

/// Where `Cost` walks through the plans of all ranks, this walks through the steps of some that stand for all
/// (watched_ranks). A message of a step arrives when the slowest of them has sent its messages of that step. Equal
/// steps are walked until their pace is known, and so are tiles. What a rank does in a step is derived from its
/// transfers alone, as lowering and fusing would arrange them, so no plan is made.
///
/// Where all ranks do the same at the same time the prediction is that of `Cost`; elsewhere it is near
/// (step_cost_test).
class StepCost {
 public:
  StepCost(const Algorithm& algorithm, const Shape& shape, Access access, const Machine& machine,
           const Conditions& conditions);

  /// As Cost::us.
  double us(std::size_t group_bytes, double bound_us = std::numeric_limits<double>::infinity());
  /// As Cost::bytes_moved.
  std::size_t bytes_moved(std::size_t group_bytes) const { return use_.bytes_moved(group_bytes); }
  int steps() const { return steps_; }

 private:
  /// Times of one rank that stands for others.
  struct Clock {
    double now = 0;
    double busy = 0;   ///< of it with work
    double begun = 0;  ///< when it had its first work
    bool idle = true;  ///< has had none
  };
  /// When the messages of the last step in which a watched rank sent some were on their way, and the steps since.
  struct Sent {
    double at = 0;
    int steps_ago = 0;
  };

  void watch(const Algorithm& algorithm, const Shape& shape);
  void price(std::size_t group_bytes);
  double entry_us() const;
  /// Of the ranks of a core, each but the last gives the core to the next one.
  double turns_us() const { return (use_.crowd - 1) * machine_.switch_us; }
  double send_us(const StepWork& work) const;
  double receive_us(const StepWork& work, std::size_t kind) const;
  void step();
  void send(std::size_t i, std::array<bool, distances>& sends);
  void receive(std::size_t i, std::size_t kind);
  void walk(double bound_us);

  Machine machine_;
  Conditions conditions_;
  MemoryUse use_;
  int steps_ = 0;
  std::vector<std::vector<StepRun>> watched_;  ///< by watched rank

  // State for one call size.
  CallCosts call_;
  AccessCosts block_;
  double apart_ = 0;                  ///< µs a block between hosts
  std::vector<Clock> clocks_;         ///< by watched rank
  std::vector<const StepWork*> now_;  ///< by watched rank: its work in the present step
  std::array<Sent, distances> sent_;  ///< by distance
};

}  // namespace tutti
