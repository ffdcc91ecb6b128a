#include "plan/types.h"

namespace tutti {
namespace {

consteval bool numbers_are_places() {
  int place = 0;
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) \
  if (number != place++) return false;
#define TUTTI_HOST_TYPE TUTTI_TYPE
#include "plan/types.inc"
  return true;
}
static_assert(numbers_are_places(), "types.inc is ordered by number");

consteval int device_types() {
  int count = 0;
#define TUTTI_TYPE(...) ++count;
#include "plan/types.inc"
  return count;
}
static_assert(device_types() == device_type_count);

}  // namespace

std::string_view name(Collective collective) {
  static constexpr std::string_view names[] = {"all_reduce",     "reduce",     "broadcast", "all_gather",
                                               "reduce_scatter", "all_to_all", "gather",    "scatter",
                                               "barrier",        "scan",       "ex_scan"};
  return names[static_cast<int>(collective)];
}

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
