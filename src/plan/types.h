// Types that every module shares: ranks, collectives, data types, operators, and the shape of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/collectives.h"

namespace tutti {

/// Dense, as tables and packed words need it; programs know the numbers of tuttiDataType_t.
enum class DataType : std::uint8_t {
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) enumerator,
#include "plan/types.inc"
};

/// Types whose arithmetic is alike; small ones are floats of 8 and 16 bits, computed with as float32.
enum class TypeGroup : std::uint8_t { integer, floating, small, complex };

struct TypeFacts {
  TypeGroup group;
  int number;  ///< tuttiDataType_t
  std::size_t bytes;
  std::string_view name;
};
inline constexpr TypeFacts type_facts[] = {
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) {TypeGroup::group, number, bytes, #enumerator},
#include "plan/types.inc"
};
inline constexpr int data_type_count = std::size(type_facts);
template <>
struct EnumBounds<DataType> {
  static constexpr DataType first{}, last{data_type_count - 1};
};
/// The first so many are those that GPUs compute with, too. Their numbers are their places.
inline constexpr int device_type_count = 0
#define TUTTI_DEVICE_TYPE(...) +1  // NOLINT: one summand of many
#include "plan/types.inc"
    ;

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
  last = user
};
inline constexpr int reduce_op_count = static_cast<int>(ReduceOp::last) + 1;
/// The first so many are those that GPUs have, too.
inline constexpr int device_op_count = 6;

/// What the program combines elements by: inout[i] = in[i] op inout[i] for `count` elements of `type`, which is a
/// tuttiDataType_t.
struct UserFunction {
  void (*combine)(const void* in, void* inout, std::size_t count, unsigned type, void* context) = nullptr;
  void* context = nullptr;
};

constexpr std::size_t size_of(DataType type) {
  return type_facts[static_cast<int>(type)].bytes;
}
constexpr TypeGroup group_of(DataType type) {
  return type_facts[static_cast<int>(type)].group;
}
/// Its tuttiDataType_t.
constexpr int number_of(DataType type) {
  return type_facts[static_cast<int>(type)].number;
}
/// The type with that tuttiDataType_t, if there is one that is served everywhere.
constexpr std::optional<DataType> device_type_of_number(int number) {
  if (static_cast<unsigned>(number) < static_cast<unsigned>(device_type_count)) return static_cast<DataType>(number);
  return std::nullopt;
}
/// The type with that tuttiDataType_t, if there is one.
constexpr std::optional<DataType> type_of_number(int number) {
  if (const auto type = device_type_of_number(number)) return type;
  for (int i = device_type_count; i < data_type_count; ++i)
    if (type_facts[i].number == number) return static_cast<DataType>(i);
  return std::nullopt;
}

/// Whether `op` is defined for `type`: bitwise and logical operators for integers alone, an order of complex numbers
/// not at all.
constexpr bool applies(ReduceOp op, DataType type) {
  const TypeGroup group = group_of(type);
  if (op >= ReduceOp::bit_and && op <= ReduceOp::logical_xor) return group == TypeGroup::integer;
  const bool in_order = op == ReduceOp::max || op == ReduceOp::min;
  return group != TypeGroup::complex || (!in_order && op != ReduceOp::pre_mul_sum);
}

constexpr std::string_view name(Collective collective) {  ///< "all_reduce"
  return collective_names[static_cast<std::size_t>(collective)];
}
std::string_view name(DataType type);  ///< "float32"
std::string_view name(ReduceOp op);    ///< "sum"

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
