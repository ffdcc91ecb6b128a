// Whether the times that calls took contradict the times predicted for them.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "plan/types.h"

namespace tutti {

/// A kind of calls, which have one algorithm or a few.
struct CallKind {
  Collective collective = Collective::all_reduce;
  Access access = Access::slots;
  int width = 0;  ///< bits of the size of the largest buffer of one rank, in bytes

  static CallKind of(Collective collective, Access access, std::size_t bytes) {
    return {.collective = collective, .access = access, .width = static_cast<int>(std::bit_width(bytes))};
  }
  auto operator<=>(const CallKind&) const = default;
};

/// What one rank has seen of its communicator's calls. Calls run one at a time, so it is used by one thread at a time.
/// A call's time runs from when all ranks are known to have entered until this rank is done. A call may be slow by
/// chance, as a rank waits for its core or drives other calls meanwhile: calls of a kind count as slower than predicted
/// only if even the fastest one was, and as faster if most of them were.
class PredictionCheck {
 public:
  static constexpr std::size_t bytes_min = 64 * 1024;  ///< smaller calls do not even look here
  static constexpr double us_min = 200;                ///< predicted; below, waking up a rank counts too much
  static constexpr std::uint64_t calls_min = 8;        ///< of a kind
  static constexpr double factor = 2;

  /// Before and after the run of a call, with times of one clock. A call that is not finished does not count.
  void start(const CallKind& kind, double predicted_us, std::int64_t now_ns) {
    running_ = {.kind = kind, .predicted_us = predicted_us, .started_ns = now_ns};
  }
  void finish(std::int64_t now_ns);

  /// The kind of calls that contradicts its prediction most, in one line; nothing: none does.
  std::optional<std::string> contradiction() const;

 private:
  struct Running {
    CallKind kind;
    double predicted_us = 0;
    std::int64_t started_ns = 0;
  };
  struct Seen {
    std::uint64_t calls = 0;
    std::uint64_t fast = 0;     ///< took less than a half of the prediction
    double least = 0, sum = 0;  ///< of the ratios of time to prediction

    /// How far the calls are off, as a factor above 1; 1 if they contradict nothing.
    double off() const;
  };

  Running running_;
  std::map<CallKind, Seen> seen_;
};

}  // namespace tutti
