// Types that every module shares: ranks, collectives, data types, operators, and the shape of a call.
#pragma once

#include <cstddef>
#include <cstdint>
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
};
inline constexpr int collective_count = 9;

/// Enumerators have NCCL's numbers; the C API passes them through.
enum class DataType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8_e4m3 = 10,
  float8_e5m2 = 11,
};
inline constexpr int data_type_count = 12;

/// pre_mul_sum: each rank's input is multiplied by that rank's scalar, rounded to the type, then summed.
enum class ReduceOp : std::uint8_t { sum = 0, prod = 1, max = 2, min = 3, avg = 4, pre_mul_sum = 5 };
inline constexpr int reduce_op_count = 6;

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: return 1;
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 8;
  }
  return 0;
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
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

/// What an algorithm may depend on: only facts that all ranks share, nothing local.
struct Shape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::vector<Level> levels = {};  ///< outermost first; empty: one flat group
};

}  // namespace tutti
