// Proves the plans of all ranks together, after lower and again after fuse.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// One way to run the plans. Tiles, channels and slots apply to Access::slots; the other accesses have one tile on one
/// channel.
struct CheckCase {
  /// Per connection and channel. With slots, acquire waits for a free slot and settle does nothing. With 0, a message
  /// stays in the sender's memory until it is taken: acquire and settle wait until the previous message has been
  /// released, commit never waits, and a rank must have settled all its messages when its call ends.
  int slots = 2;
  int channels = 2;
  int tiles = 3;  ///< dealt to channels in turn
  /// how often the plan runs in a row, on the same slots, flags and call descriptors, each time with new buffers
  int calls = 2;
  std::vector<bool> in_place = {};  ///< by rank: its output is its input, as the collective defines it; empty: none
  /// By rank; empty: each rank has its own. Ranks of one host offer each other every block that outlasts its message
  /// (Plan::outlasts), which is then read from its sender's buffer. Not with 0 slots. Which buffer holds a block may
  /// depend on whether sums are pre-multiplied, so these are proven with and without.
  std::vector<int> hosts = {};
};

/// The plans of all ranks for one of several calls in a row.
struct CheckedCall {
  const Schedule* schedule = nullptr;
  std::span<const Plan> plans;
  std::vector<bool> in_place = {};  ///< by rank, as in CheckCase
};

/// Executes all plans symbolically with vector clocks. Refuses:
/// - a wrong or missing contribution, or an order of reduction that differs from the schedule's;
/// - Action::last or Place::contribution missing, or set more than once, between a contribution and its result;
/// - Place::halvings or Action::halvings other than those of the inputs that a sum holds;
/// - two unordered accesses to one block. The user counts as accessing all of a rank's input and output between two of
///   its calls. Entering a call orders only what its access waits for;
/// - a deadlock, a message whose two ends disagree, a message or signal that is never taken;
/// - an operand out of range or of a kind that the access does not have;
/// - a barrier that a rank can leave before another rank has entered.
/// Errors: internal, with peer = rank, channel and step set.
Result<void> check(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how);

/// As above for different plans of the same ranks one after another, on the same slots, flags and call descriptors:
/// runs all of `calls` (at least one) in turn, `how.calls` times. Each call names its ranks in place; `how.in_place` is
/// not used.
Result<void> check(std::span<const CheckedCall> calls, const CheckCase& how);

/// The channels of all ranks on one processor where each channel is a thread block. The processor starts thread blocks
/// in any order and keeps each until its call is over.
struct Residency {
  int channels = 0;  ///< that have anything to do
  int resident = 0;  ///< that must fit at once so that no order deadlocks; with fewer, some order may deadlock
};

/// For one call. Waiting for call descriptors and for the entry of a call counts too, as in kernels that wait for each
/// other. Errors: as check.
Result<Residency> residency(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how);

/// The cases that suffice to prove a plan: {no, all, some ranks in place} × slots {0, 1, 2} if `access` has slots.
std::vector<CheckCase> check_cases(Collective collective, int ranks, Access access);

}  // namespace tutti
