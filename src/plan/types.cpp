#include "plan/types.h"

namespace tutti {

std::string_view name(Collective collective) {
  static constexpr std::string_view names[] = {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
                                               "all_to_all", "gather", "scatter",   "barrier"};
  return names[static_cast<int>(collective)];
}

std::string_view name(DataType type) {
  static constexpr std::string_view names[] = {"int8",    "uint8",    "int32",       "uint32",
                                               "int64",   "uint64",   "float16",     "float32",
                                               "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return names[static_cast<int>(type)];
}

std::string_view name(ReduceOp op) {
  static constexpr std::string_view names[] = {"sum", "prod", "max", "min", "avg", "pre_mul_sum"};
  return names[static_cast<int>(op)];
}

}  // namespace tutti
