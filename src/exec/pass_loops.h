// How the passes of a call go through memory: rules, and the loop of each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "plan/loop.h"
#include "plan/plan.h"

namespace tutti {

/// How passes go through memory. Ranks may differ in it, but for `direct_bytes`.
struct PassRules {
  LoopTable loops;                    ///< of passes that write results
  std::size_t nontemporal_bytes = 0;  ///< not 0: calls of this size or more use nontemporal stores, instead of `loops`
  /// Smaller blocks are copied through slots, which costs less than tracking the use of the caller's memory. Equal on
  /// all ranks.
  std::size_t direct_bytes = 8 * 1024;
  std::size_t bounce_bytes = 128 * 1024;  ///< of data pulled at once to be reduced
  /// Messages of this size or more are written with nontemporal stores: see FarRates::streamed_bytes.
  std::size_t streamed_bytes = std::numeric_limits<std::size_t>::max();
  /// Copies by CMA whose addresses are a few bytes apart modulo a page take less time through a bounce buffer.
  bool realigns = false;
};
inline constexpr PassRules default_rules;

/// The loop of each pass of one call, by the size of this rank's buffers.
class PassLoops {
 public:
  /// The rules must outlive this object.
  PassLoops(const Plan& plan, const Binding& binding, const PassRules& rules);

  const PassRules& rules() const { return *rules_; }
  /// Then there is no need to ask for the loop of a pass.
  bool always_plain() const { return always_plain_; }
  /// `bytes`: of each operand that are moved at once.
  Loop of(const Plan& plan, const Action& action, std::size_t bytes) const;

 private:
  const PassRules* rules_;
  Loop loop_ = Loop::plain;     // of all passes that write results, unless they are measured
  bool measured_ = false;       // passes that write results do as the rules' table says
  std::uint8_t footprint_ = 0;  // index into LoopFootprints
  std::optional<Loop> pulled_;  // of sums that peers copy by CMA, if measured
  bool always_plain_;
};

}  // namespace tutti
