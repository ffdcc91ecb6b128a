// The ranks' data and the expected results, chosen so that every correct result is known to the last bit.
#pragma once

#include <optional>
#include <vector>

#include "perf/elements.h"

namespace perf {

/// The reductions of the programs; none for collectives that only move data.
enum class Op { none, sum, prod, min, max, avg, mulsum };

enum class Data {
  exact,   ///< every order of operations gives the same bits: results are compared bit by bit
  random,  ///< floats over many exponents: results are compared with a float64 reference and an error bound
};

/// The data of one check: one tile of elements per rank, laid out over a buffer of any length.
///
/// A buffer repeats its tile, rotated further each time, so that no two places are alike within 16 million elements and
/// a misplaced block is detected.
class Pattern {
 public:
  /// Means "the reduction" in place of a rank.
  static constexpr int kAllRanks = -1;

  /// The reduction is of the first `combined` ranks' data, at least one; 0: of all.
  Pattern(const Type& type, Op op, int ranks, std::uint64_t seed, Data data, int combined = 0);

  /// Writes elements [first, first + count) of `rank`'s send data.
  void fill(void* buffer, std::size_t count, int rank, std::size_t first = 0) const;

  /// How many elements of `got` differ from elements [first, first + count) of `rank`'s send data, or of the reduction.
  std::size_t count_wrong(const void* got, std::size_t count, int rank, std::size_t first) const;

  /// The factor of `rank` in Op::mulsum.
  static double factor(int rank) { return 1 + rank % 2; }

 private:
  struct Reference {
    std::vector<double> value, tolerance;
  };

  std::vector<std::byte> make_inputs(int rank) const;
  std::vector<std::byte> reduce_exactly() const;
  Reference reduce_in_double() const;
  bool is_close(std::uint64_t bits, std::size_t tile_index) const;

  const Type& type_;
  Op op_;
  int ranks_;
  int combined_;
  std::uint64_t seed_;
  Data data_;
  std::vector<std::vector<std::byte>> inputs_;  ///< by rank
  std::vector<std::byte> reduced_;
  std::optional<Reference> reference_;  ///< with Data::random, where rounding depends on the order
};

}  // namespace perf
