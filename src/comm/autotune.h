// Autotuning (TUTTI_AUTOTUNE): tries the algorithms with the best predictions in the first calls of a kind, and keeps
// the fastest.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti {

/// A kind of calls: the algorithm depends only on the kind and on facts that never change in a communicator.
struct TuningKind {
  Collective collective = Collective::all_reduce;
  Access access = Access::slots;
  int width = 0;  ///< bits of the size of the largest buffer of one rank, in bytes

  static TuningKind of(Collective collective, Access access, std::size_t bytes) {
    return {.collective = collective, .access = access, .width = static_cast<int>(std::bit_width(bytes))};
  }
  auto operator<=>(const TuningKind&) const = default;
};

inline constexpr std::size_t candidates_max = 3;

/// A rank's times in the tuning that ended last; published in the descriptor of a later call.
struct TuningTimes {
  std::array<std::uint64_t, candidates_max> ns{};
  std::uint64_t tuning = 0;  ///< from 1; 0: none has ended
};

/// All tunings of a communicator. In a tuning the candidates take turns, call by call, each `trials` times. A rank's
/// time for a candidate is the shortest of its calls, measured from when all ranks are known to have entered. In the
/// next call in which all ranks read all descriptors, each rank publishes its times. A candidate's time is the time of
/// the slowest rank, and the candidate with the shortest time wins. All ranks have the same calls, predictions and
/// descriptors, hence the same turns and winners.
class Autotuner {
 public:
  explicit Autotuner(int trials) : trials_(trials) {}

  bool on() const { return trials_ > 0; }

  struct Tuning {
    std::uint64_t number = 0;  ///< from 1, in the order in which tunings begin
    int calls = 0;             ///< made so far
    std::vector<const Algorithm*> candidates;
    const Algorithm* winner = nullptr;
    std::array<std::uint64_t, candidates_max> own_ns{};
    std::array<std::uint64_t, candidates_max> ns{};  ///< of the slowest rank
  };
  /// nullptr: no call of this kind yet.
  const Tuning* find(const TuningKind& kind) const;
  /// Begins a tuning. A tuning with a single candidate is decided at once.
  const Tuning& enter(const TuningKind& kind, std::vector<const Algorithm*> candidates);

  /// The algorithm for the next call of the tuning's kind.
  static const Algorithm& turn(const Tuning& tuning);
  /// To be called before and after the run of a call, with times of one clock. Calls run one at a time.
  void start(const TuningKind& kind, std::int64_t now_ns);
  void finish(std::int64_t now_ns);

  /// `line` returns the times to publish in a call descriptor. `hear` must get the times of all ranks, including this
  /// one, before `decide` chooses the winner. Without effect if no tuning has ended.
  TuningTimes line() const;
  void hear(const TuningTimes& times);
  void decide();

  /// Describes the tuning in text; empty if there was none. For explanations.
  std::string story(const TuningKind& kind) const;

 private:
  int trials_;
  std::map<TuningKind, Tuning> autotuner_;
  Tuning* running_ = nullptr;
  std::int64_t started_ns_ = 0;
  Tuning* ended_ = nullptr;  // not decided yet: decided by the next call, of any kind, that publishes times
};

}  // namespace tutti
