// Tries the algorithms with the best predictions in the first calls of a kind, and keeps the fastest (TUTTI_AUTOTUNE).
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

/// Calls that are served alike: what the choice goes by besides what a communicator never changes.
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

/// What a rank tells the others in the descriptor of the next call: its times in the tuning that has ended.
struct TuningTimes {
  std::array<std::uint64_t, candidates_max> ns{};
  std::uint64_t tuning = 0;  ///< from 1; 0: none has ended
};

/// All tunings of a communicator. In a tuning the candidates take turns, call by call, each `trials` times. A rank's
/// time for one is the shortest of its calls, from when all ranks are known to have entered. In the next call whose
/// lines all ranks read, each publishes its times; a candidate's time is then that of the slowest rank, and the
/// shortest one wins. All ranks have the same calls, predictions and lines, hence the same turns and winners.
class Autotuner {
 public:
  explicit Autotuner(int trials) : trials_(trials) {}

  bool on() const { return trials_ > 0; }

  struct Tuning {
    std::uint64_t number = 0;  ///< from 1, in the order of their beginning
    int calls = 0;             ///< made so far
    std::vector<const Algorithm*> candidates;
    const Algorithm* winner = nullptr;
    std::array<std::uint64_t, candidates_max> own_ns{};
    std::array<std::uint64_t, candidates_max> ns{};  ///< of the slowest rank
  };
  /// nullptr: there was no such call yet.
  const Tuning* find(const TuningKind& kind) const;
  /// One with a single candidate is decided.
  const Tuning& enter(const TuningKind& kind, std::vector<const Algorithm*> candidates);

  /// What a call of that kind uses.
  static const Algorithm& turn(const Tuning& tuning);
  /// Around the run of such a call, in ns of one clock. Calls run one at a time.
  void start(const TuningKind& kind, std::int64_t now_ns);
  void finish(std::int64_t now_ns);

  /// What to publish in a line; to be heard from all ranks, this one too, before decide. Nothing happens where no
  /// tuning has ended.
  TuningTimes line() const;
  void hear(const TuningTimes& line);
  void decide();

  /// In words; empty where there was no such tuning. For explanations.
  std::string story(const TuningKind& kind) const;

 private:
  int trials_;
  std::map<TuningKind, Tuning> autotuner_;
  Tuning* running_ = nullptr;
  std::int64_t started_ns_ = 0;
  Tuning* ended_ = nullptr;  // not decided yet: the next call of any kind that carries lines decides it
};

}  // namespace tutti
