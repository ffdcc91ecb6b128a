#include "support/elements.h"

#include <array>

namespace tutti::testing {

const char* name(Op op) {
  constexpr std::array names = {"sum", "prod", "max", "min", "avg", "pre_mul_sum"};
  return names[static_cast<std::size_t>(op)];
}

const char* name(tuttiDataType_t type) {
  constexpr std::array names = {"int8",    "uint8",   "int32",   "uint32",   "int64",       "uint64",
                                "float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return names[static_cast<std::size_t>(type)];
}

std::size_t size_of(tuttiDataType_t type) {
  return with_type(type, [](auto* t) { return sizeof(*t); });
}

}  // namespace tutti::testing
