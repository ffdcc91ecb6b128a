// Types that every module shares: ranks, collectives, data types, operators, and the shape of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace tutti {

using Rank = int;

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  scan,
  ex_scan,
};
inline constexpr int collective_count = 11;

/// Enumerators have NCCL's numbers; the C API passes them through.
enum class DataType : std::uint8_t {
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) enumerator = (number),
#define TUTTI_HOST_TYPE TUTTI_TYPE
#include "plan/types.inc"
};

/// Types whose arithmetic is alike; small ones are floats of 8 and 16 bits, computed with as float32.
enum class TypeGroup : std::uint8_t { integer, floating, small, complex };

struct TypeFacts {
  TypeGroup group;
  std::size_t bytes;
  std::string_view name;
};
/// By number.
inline constexpr TypeFacts type_facts[] = {
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) {TypeGroup::group, bytes, #enumerator},
#define TUTTI_HOST_TYPE TUTTI_TYPE
#include "plan/types.inc"
};
inline constexpr int data_type_count = std::size(type_facts);
/// The first so many are those that GPUs compute with, too.
inline constexpr int device_type_count = 12;

/// pre_mul_sum: each rank's input is multiplied by that rank's scalar, rounded to the type, then summed. Logical
/// operators take every number but 0 for true, and give 0 or 1. user: a function of the program.
enum class ReduceOp : std::uint8_t {
  sum = 0,
  prod = 1,
  max = 2,
  min = 3,
  avg = 4,
  pre_mul_sum = 5,
  bit_and = 6,
  bit_or = 7,
  bit_xor = 8,
  logical_and = 9,
  logical_or = 10,
  logical_xor = 11,
  user = 12,
};
inline constexpr int reduce_op_count = 13;
/// The first so many are those that GPUs have, too.
inline constexpr int device_op_count = 6;

/// What the program combines elements by: inout[i] = in[i] op inout[i] for `count` elements of `type`, which is a
/// tuttiDataType_t.
struct UserFunction {
  void (*combine)(const void* in, void* inout, std::size_t count, unsigned type, void* context) = nullptr;
  void* context = nullptr;
};

/// Whether `op` is defined for `type`: bitwise and logical operators for integers alone, an order of complex numbers
/// not at all.
constexpr bool applies(ReduceOp op, DataType type);

constexpr std::size_t size_of(DataType type) {
  return type_facts[static_cast<int>(type)].bytes;
}
constexpr TypeGroup group_of(DataType type) {
  return type_facts[static_cast<int>(type)].group;
}

constexpr bool applies(ReduceOp op, DataType type) {
  const TypeGroup group = group_of(type);
  if (op >= ReduceOp::bit_and && op <= ReduceOp::logical_xor) return group == TypeGroup::integer;
  const bool in_order = op == ReduceOp::max || op == ReduceOp::min;
  return group != TypeGroup::complex || (!in_order && op != ReduceOp::pre_mul_sum);
}

/// Prefix reductions: rank r gets the inputs of ranks 0 to r, or to r - 1, combined in the order of ranks.
constexpr bool prefixes(Collective collective) {
  return collective == Collective::scan || collective == Collective::ex_scan;
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter || prefixes(collective);
}

/// Whether ReduceOp::avg is defined for it. Prefixes have no common number of inputs to divide by.
constexpr bool averages(Collective collective) {
  return reduces(collective) && !prefixes(collective);
}

/// Of a collective that reduces: how many ranks' inputs, from rank 0 on, are combined in `rank`'s output.
constexpr int ranks_combined(Collective collective, int ranks, Rank rank) {
  if (collective == Collective::scan) return rank + 1;
  return collective == Collective::ex_scan ? rank : ranks;
}

constexpr bool rooted(Collective collective) {
  return collective == Collective::reduce || collective == Collective::broadcast || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::string_view name(Collective collective);  ///< "all_reduce"
std::string_view name(DataType type);          ///< "float32"
std::string_view name(ReduceOp op);            ///< "sum"

/// One level of the machine: rank → group, e.g. ranks of one host or of one NUMA node. Groups may differ in size.
using Level = std::vector<int>;

class StepObserver;  // plan/schedule.h

/// What an algorithm may depend on: only facts that all ranks share, nothing local.
struct Shape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::vector<Level> levels = {};  ///< outermost first; empty: one flat group
  /// Ranks in an order in which neighbours are near each other, so that neighbours of a ring or tree are; empty: by
  /// number.
  std::vector<Rank> order = {};
  /// Several orders of all ranks, for rings that share the data: each goes through every host once, by other links and
  /// out of other ranks than the others as far as the machine permits. Empty: not more than `order` is known.
  std::vector<std::vector<Rank>> rings = {};
  /// Of a shape that is a part of another, by rank: of how many inputs of the whole call its input is the sum, if more
  /// than one.
  std::vector<int> inputs = {};
  int inputs_of(Rank rank) const { return inputs.empty() ? 1 : inputs[static_cast<std::size_t>(rank)]; }

  static constexpr Rank everybody = -1;
  /// The rank whose transfers are asked for, so that one rank's plan costs that rank's work. Nothing else of a schedule
  /// depends on it.
  Rank only = everybody;
  /// With `only`, for predictions instead of plans: gets each step's transfers, which the schedule then forgets. Of
  /// many equal steps in a row, a few are enough (Schedule::repeat).
  StepObserver* observer = nullptr;
};

}  // namespace tutti
