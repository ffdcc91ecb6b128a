// What the ranks send, and what must therefore arrive: chosen so that every right result is known to the last bit.
#pragma once

#include <optional>
#include <vector>

#include "perf/elements.h"

namespace perf {

/// A reduction as the programs know it: none for collectives that only move data.
enum class Op { none, sum, prod, min, max, avg, mulsum };

enum class Data {
  exact,   ///< every order of operations gives the same bits: results are compared bit by bit
  random,  ///< floats over many exponents: results are compared with a float64 reference and an error bound
};

/// The data of one check: one tile of elements per rank, laid out over a buffer of any length.
///
/// A buffer repeats its tile, each time rotated further, so no two places of it are alike for 16 million elements and a
/// block that lands in a wrong place is seen.
class Pattern {
 public:
  /// Stands for "the reduction over all ranks" where a rank is expected.
  static constexpr int kAllRanks = -1;

  Pattern(const Type& type, Op op, int ranks, std::uint64_t seed, Data data);

  /// Writes elements [first, first + count) of what `rank` sends.
  void fill(void* buffer, std::size_t count, int rank, std::size_t first = 0) const;

  /// How many elements of `got` differ from elements [first, first + count) of what `rank` sent, or of the reduction.
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
  std::uint64_t seed_;
  Data data_;
  std::vector<std::vector<std::byte>> inputs_;  ///< by rank
  std::vector<std::byte> reduced_;
  std::optional<Reference> reference_;  ///< with Data::random, where rounding depends on the order
};

}  // namespace perf
