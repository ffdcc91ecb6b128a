#include "support/elements.h"

#include <array>

#include "plan/types.h"

namespace tutti::testing {

const char* name(Op op) {
  constexpr std::array names = {"sum", "prod", "max", "min", "avg", "pre_mul_sum"};
  return names[static_cast<std::size_t>(op)];
}

const char* name(tuttiDataType_t type) {
  return tutti::name(internal(type)).data();  // a literal
}

std::size_t size_of(tuttiDataType_t type) {
  return with_type(type, [](auto* t) { return sizeof(*t); });
}

}  // namespace tutti::testing
