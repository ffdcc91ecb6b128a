// A perf program is the description of one collective. The harness does the rest, from options to table.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "perf/pattern.h"

namespace perf {

/// One call of one rank.
struct Call {
  const void* send;
  void* recv;
  std::size_t count;  ///< as in the collective's interface: elements of one block
  tuttiDataType_t type;
  tuttiRedOp_t op;
  int root;
  int rank;
  int ranks;
  tuttiComm_t comm;
  tuttiStream_t stream;
};

/// Elements [first, first + count) of `rank`'s send data, or of the reduction, which belong at element `at` of a
/// receive buffer.
struct Piece {
  std::size_t at;
  std::size_t count;
  int rank;
  std::size_t first;
};

/// The required content of a rank's receive buffer after the call. In Call, send and recv are not set.
using Expected = std::vector<Piece> (*)(const Call& call);

std::vector<Piece> reduction(const Call& call);  ///< every rank: all of it
std::vector<Piece> reduction_at_root(const Call& call);
std::vector<Piece> block_of_reduction(const Call& call);  ///< rank r: block r
std::vector<Piece> prefix(const Call& call);              ///< every rank: all of its own reduction
std::vector<Piece> prefix_but_on_first(const Call& call);
std::vector<Piece> all_inputs(const Call& call);  ///< one after another
std::vector<Piece> all_inputs_at_root(const Call& call);
std::vector<Piece> input_of_root(const Call& call);
std::vector<Piece> block_of_root(const Call& call);      ///< rank r: block r of root's input
std::vector<Piece> block_of_everyone(const Call& call);  ///< rank r: block r of every input
std::vector<Piece> input_of_previous(const Call& call);  ///< rank r: the input of rank r - 1

/// The size of a buffer: one block of `count` elements, or one per rank.
enum class Blocks { one, per_rank };

/// The meaning of in place for a collective.
enum class InPlace { same_buffer, send_is_own_block, recv_is_own_block, never };

struct Description {
  std::string_view name;  ///< "all_reduce"
  tuttiResult_t (*launch)(const Call& call);
  Expected expected;
  double (*bus_factor)(double ranks);  ///< bus bandwidth = factor × bytes ÷ time: see docs/performance.md
  Blocks send = Blocks::one;
  Blocks recv = Blocks::one;
  InPlace in_place = InPlace::same_buffer;
  bool reduces = false;
  bool has_root = false;
  /// Of a prefix reduction: how many ranks' inputs, from rank 0 on, `rank`'s result combines. Null: those of all.
  int (*combined)(int rank) = nullptr;
};

inline double bus_factor_one(double) {
  return 1;
}
inline double bus_factor_others(double ranks) {
  return (ranks - 1) / ranks;
}

/// The whole program. Returns its exit code.
int run(int argc, char** argv, const Description& description);

}  // namespace perf
