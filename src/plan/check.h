// Proves the programs of all ranks together, after lower and again after fuse.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

/// One way to run the plans. Tiles, channels and slots concern Access::slots; the others have one tile on one channel.
struct CheckCase {
  /// Per connection and channel. With slots, acquire waits for a free one and settle does nothing. 0: a message lies in
  /// the sender's memory until it is taken. Then acquire and settle wait until the one before was released, commit
  /// never waits, and a rank must have settled all its messages when its call ends.
  int slots = 2;
  int channels = 2;
  int tiles = 3;  ///< dealt to channels in turn
  int calls = 2;  ///< the plan so often in a row, on the same slots, flags and lines, buffers given anew
  std::vector<bool> in_place = {};  ///< by rank: its output is its input, as the collective defines it; empty: none
};

/// The plans of all ranks for one call of several in a row.
struct CheckedCall {
  const Schedule* schedule = nullptr;
  std::span<const Plan> plans;
  std::vector<bool> in_place = {};  ///< by rank, as in CheckCase
};

/// Executes all plans symbolically with vector clocks. Refuses:
/// - a wrong or missing contribution, an order of reduction that differs from the schedule's;
/// - Action::last or Place::leaf missing or too often on the way of a contribution into a result;
/// - two accesses of one block without an order, where the user too accesses all of a rank's input and output between
/// two
///   of its calls; the entry of a call orders nothing but what its access waits for;
/// - a deadlock, a message whose two ends disagree, a message or signal that is never taken;
/// - an operand out of range or of a kind that the access does not have;
/// - a barrier that a rank can leave before another has entered.
/// Errors: internal, with peer = rank, channel = channel and step set.
Result<void> check(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how);

/// The same for different plans of the same ranks one after another, on the same slots, flags and lines: all of `calls`
/// (one at least) in turn, `how.calls` times over. Each call says who is in place, `how` does not.
Result<void> check(std::span<const CheckedCall> calls, const CheckCase& how);

/// Channels of all ranks, where each is a thread block of one processor, which takes blocks in any order and keeps each
/// until its call is over.
struct Residency {
  int channels = 0;  ///< that have something to do
  int resident = 0;  ///< that must fit at once: then no order is a deadlock. With fewer, some order may be one.
};

/// Of one call. Lines and the entry of a call count as waiting too, as in kernels that meet. Errors: as check.
Result<Residency> residency(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how);

/// Enough to believe a plan: {none, all, some ranks in place} × slots {0, 1, 2} as far as `access` has slots.
std::vector<CheckCase> check_cases(Collective collective, int ranks, Access access);

}  // namespace tutti
