#include "plan/types.h"

namespace tutti {
namespace {

consteval bool device_types_come_first() {
  bool host = false;
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) \
  host = static_cast<int>(DataType::enumerator) >= device_type_count;
#define TUTTI_DEVICE_TYPE(group, enumerator, number, bytes, storage) \
  if (host || number != static_cast<int>(DataType::enumerator)) return false;
#include "plan/types.inc"
  return true;
}
static_assert(device_types_come_first(), "the types of GPUs come first in types.inc, in the order of their numbers");

consteval bool numbers_are_distinct() {
  for (int i = 0; i < data_type_count; ++i)
    if (const auto found = type_of_number(type_facts[i].number); !found || static_cast<int>(*found) != i) return false;
  return true;
}
static_assert(numbers_are_distinct(), "two types of types.inc have one number");

}  // namespace

std::string_view name(DataType type) {
  return type_facts[static_cast<int>(type)].name;
}

std::string_view name(ReduceOp op) {
  static constexpr std::string_view names[] = {"sum",         "prod",        "max",    "min",     "avg",
                                               "pre_mul_sum", "bit_and",     "bit_or", "bit_xor", "logical_and",
                                               "logical_or",  "logical_xor", "user"};
  return names[static_cast<int>(op)];
}

}  // namespace tutti
