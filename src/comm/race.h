// The algorithms that are predicted to be the fastest race each other in the first calls of a kind (TUTTI_RACE).
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
struct RaceKind {
  Collective collective = Collective::all_reduce;
  Access access = Access::slots;
  int width = 0;  ///< bits of the size of the largest buffer of one rank, in bytes

  static RaceKind of(Collective collective, Access access, std::size_t bytes) {
    return {.collective = collective, .access = access, .width = static_cast<int>(std::bit_width(bytes))};
  }
  auto operator<=>(const RaceKind&) const = default;
};

inline constexpr std::size_t entrants_max = 3;

/// What a rank tells the others in the line of the next call: its times in the race that has ended.
struct RaceLine {
  std::array<std::uint64_t, entrants_max> ns{};
  std::uint64_t race = 0;  ///< from 1; 0: none has ended
};

/// All races of a communicator. In a race the entrants take turns, call by call, each `trials` times. A rank's time for
/// one is the shortest of its calls, from when all ranks are known to have entered. In the next call whose lines all
/// ranks read, each publishes its times; an entrant's time is then that of the slowest rank, and the shortest one wins.
/// All ranks have the same calls, predictions and lines, hence the same turns and winners.
class Races {
 public:
  explicit Races(int trials) : trials_(trials) {}

  bool on() const { return trials_ > 0; }

  struct Race {
    std::uint64_t number = 0;  ///< from 1, in the order of their beginning
    int calls = 0;             ///< made so far
    std::vector<const Algorithm*> entrants;
    const Algorithm* winner = nullptr;
    std::array<std::uint64_t, entrants_max> own_ns{};
    std::array<std::uint64_t, entrants_max> ns{};  ///< of the slowest rank
  };
  /// nullptr: there was no such call yet.
  const Race* find(const RaceKind& kind) const;
  /// One with only one entrant has been won.
  const Race& enter(const RaceKind& kind, std::vector<const Algorithm*> entrants);

  /// What a call of that kind uses.
  static const Algorithm& turn(const Race& race);
  /// Around the run of such a call, in ns of one clock. Calls run one at a time.
  void start(const RaceKind& kind, std::int64_t now_ns);
  void finish(std::int64_t now_ns);

  /// What to publish in a line; to be heard from all ranks, this one too, before decide. Nothing happens where no race
  /// has ended.
  RaceLine line() const;
  void hear(const RaceLine& line);
  void decide();

  /// In words; empty where there was no such race. For explanations.
  std::string story(const RaceKind& kind) const;

 private:
  int trials_;
  std::map<RaceKind, Race> races_;
  Race* running_ = nullptr;
  std::int64_t started_ns_ = 0;
  Race* ended_ = nullptr;  // not decided yet: the next call of any kind that carries lines decides it
};

}  // namespace tutti
