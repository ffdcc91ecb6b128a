// What the reference executor computes with: random words, operators that show every mistake, and the right results.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "plan/schedule.h"
#include "support/random.h"

namespace tutti::testing {

using Word = std::uint64_t;

/// Blocks of one tile hold so many words, depending on the part, so that a pass with a wrong part moves too few or too
/// many.
inline constexpr int block_words_max = 3;
inline int block_words(int part) {
  return 1 + part % block_words_max;
}

enum class Yardstick {
  schedule,    ///< the schedule's own order of reductions: an operator that is neither commutative nor associative
  definition,  ///< what the collective means: a sum
};

/// What stands for a half: an odd number, so that nothing is lost.
inline constexpr Word a_half = 0xff51afd7ed558ccdu;
constexpr Word inverse_of(Word odd) {
  Word inverse = odd;  // right in the lowest three bits, and in twice as many after each turn
  for (int turn = 0; turn < 5; ++turn) inverse *= 2 - odd * inverse;
  return inverse;
}
static_assert(a_half * inverse_of(a_half) == 1);

/// Operators, and every rank's contributions.
class Arithmetic {
 public:
  /// `scales`: sums are pre-multiplied by every rank's factor; else all factors are one.
  Arithmetic(Yardstick yardstick, bool reduces, std::uint64_t seed, bool scales = true)
      : ordered_(yardstick == Yardstick::schedule), reduces_(reduces), scales_(reduces && scales), seed_(seed) {}

  Word contribution(int call, Rank rank, int block, int tile, int word) const {
    return hash(hash(hash(seed_ + static_cast<Word>(call), rank, block), tile, word), 0, 0);
  }
  /// A rank's factor of a pre-multiplied sum; reading with Place::contribution applies it.
  Word scaled(Word x, Rank rank) const { return scales_ ? x * (hash(seed_, rank, -1) | 1) : x; }
  Word combined(Word left, Word right) const {
    return ordered_ ? (left ^ std::rotl(right, 17)) * 0x9e3779b97f4a7c15u + right : left + right;
  }
  /// The rounding at the end of a pass of more than one operand.
  Word rounded(Word x) const { return ordered_ ? std::rotl(x * 0xbf58476d1ce4e5b9u, 29) : x; }
  /// How an average keeps a sum: halved so often; and what it was.
  static Word halved(Word x, int times) { return times == 0 ? x : halved(x * a_half, times - 1); }
  static Word doubled(Word x, int times) { return times == 0 ? x : doubled(x * inverse_of(a_half), times - 1); }
  /// What Action::last does, as an average's division, with a sum that was halved so often.
  Word finished(Word x, int halvings) const { return (x + static_cast<Word>(halvings)) * 0x94d049bb133111ebu + 1; }
  bool reduces() const { return reduces_; }
  bool scales() const { return scales_; }
  bool ordered() const { return ordered_; }

 private:
  static Word hash(Word seed, int a, int b) {
    return Random(seed ^ (static_cast<Word>(a + 1) << 32 ^ static_cast<Word>(b + 1)) * 0xd6e8feb86659fd93u).next();
  }
  bool ordered_;
  bool reduces_;
  bool scales_;
  std::uint64_t seed_;
};

/// Right results of one collective, call by call.
class Expected {
 public:
  /// The schedule's ranks and blocks exist.
  Expected(const Schedule& schedule, Yardstick yardstick);

  /// Computes the outputs of `call`; `tiles` as in the run.
  void compute(const Arithmetic& arithmetic, int call, int tiles);
  /// The same results, of the last compute.
  bool operator==(const Expected& other) const { return words_ == other.words_; }
  Word at(Rank rank, int block, int tile, int word) const {
    return words_[((first_[static_cast<std::size_t>(rank)] + static_cast<std::size_t>(block)) * tiles_ +
                   static_cast<std::size_t>(tile)) *
                      block_words_max +
                  static_cast<std::size_t>(word)];
  }

 private:
  std::size_t cell(Rank rank, Ref ref) const;
  std::size_t outputs(Rank rank) const {
    return first_[static_cast<std::size_t>(rank) + 1] - first_[static_cast<std::size_t>(rank)];
  }
  Word& word(Rank rank, std::size_t block, int tile, std::size_t word) {
    return words_[((first_[static_cast<std::size_t>(rank)] + block) * tiles_ + static_cast<std::size_t>(tile)) *
                      block_words_max +
                  word];
  }
  void contribute(const Arithmetic& arithmetic, int call, int tile);
  void step(const Arithmetic& arithmetic, std::size_t begin, std::size_t end);
  void by_schedule(const Arithmetic& arithmetic, int call, int tile);
  void by_definition(const Arithmetic& arithmetic, int call, int tile);
  Word defined(const Arithmetic& arithmetic, int call, Rank rank, int block, int tile, int word) const;

  Schedule schedule_;
  Yardstick yardstick_;
  std::vector<std::size_t> order_;  // of transfers: by step, destination, order
  std::vector<std::size_t> first_;  // output block of each rank, in words_
  std::vector<std::size_t> cells_;  // by 3 · rank + buffer: in held_
  std::vector<Word> held_;          // by cell and word, while the schedule runs
  std::vector<Word> moving_;
  std::vector<Word> words_;
  std::size_t tiles_ = 1;
};

}  // namespace tutti::testing
