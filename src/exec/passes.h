// Carries out the passes of a plan piece by piece: reductions and copies, also of memory that can only be copied from
// (CMA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

#include "exec/bound_plan.h"
#include "exec/channel.h"
#include "exec/pass_loops.h"
#include "exec/reduce.h"

namespace tutti {

/// Where a channel stands in the plan. Has no initialisers: see Run.
struct Cursor {
  std::size_t tile;  // current tile; the next one is as many later as there are channels
  std::uint32_t action;
  bool finished;
  std::size_t pass_done;  // elements of the current pass already moved
  bool begun;             // pass_direct has begun the current pass
  std::uint64_t offered;  // bit i: destination i of the current pass need not be written
};

class Passes {
 public:
  /// All arguments must outlive this object.
  Passes(const Plan& plan, const Binding& binding, const PassRules& rules)
      : bound_(plan, binding),
        average_(binding.op == ReduceOp::avg && reduces(plan.collective)),
        weights_(average_ && averages_by_weights(binding.type)),
        direct_(plan.access == Access::slots && binding.split.stride() >= rules.direct_bytes),
        loops_(plan, binding, rules) {}

  const BoundPlan& bound() const { return bound_; }
  /// Blocks are large enough to send from and receive into the call's buffers: see pass_direct.
  bool direct() const { return direct_; }

  /// Goes on with the cursor's pass until the budget, in bytes read and written, is used up; false: not at its end.
  Result<bool> advance(Channel& channel, Cursor& cursor, const Action& action, std::size_t& budget) const;

  /// The number of elements of a pass that may be moved at once.
  std::size_t piece_elements(const Channel& channel, const Action& action, std::size_t budget) const;
  /// Moves a piece of a pass to these of its destinations.
  Result<void> move(Channel& channel, const Action& action, std::span<const Place> to, const Piece& piece) const;
  void copy_to(const Channel& channel, std::span<const Place> to, const Piece& piece, const std::byte* from,
               Loop loop) const;

 private:
  void set_source(Source& source, const Channel& channel, const Place& place, const Piece& piece) const;
  bool pulls(const Channel& channel, const Action& action) const;
  Result<void> pull_sources(Channel& channel, const Action& action, const Piece& piece,
                            std::span<Source> sources) const;
  Result<void> move_pulled_copy(Channel& channel, const Action& action, std::span<const Place> to,
                                const Piece& piece) const;
  Result<void> move_pulled_copy_apart(Channel& channel, const Action& action, std::span<const Place> to,
                                      const Piece& piece) const;
  Result<std::byte*> pull_to_bounce(Channel& channel, const Place& from, const Piece& piece, std::size_t& used) const;

  BoundPlan bound_;
  bool average_;
  bool weights_;  // an average of floats
  bool direct_;
  PassLoops loops_;
};

}  // namespace tutti
