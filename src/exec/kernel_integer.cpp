// Kernels of the integers. Signed and unsigned types share kernels that give the same bits.
#include "exec/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/kernel_integer.cpp"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include "exec/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

template <class T>
constexpr Kernel find_sized(ReduceOp op) {
  const bool sign_counts = op == ReduceOp::max || op == ReduceOp::min || op == ReduceOp::avg;
  const auto i = static_cast<std::size_t>(op);
  if (op >= ReduceOp::bit_and)
    return bit_kernels_of<std::make_unsigned_t<T>>[i - static_cast<std::size_t>(ReduceOp::bit_and)];
  return sign_counts ? kernels_of<T>[i] : kernels_of<std::make_unsigned_t<T>>[i];
}

constexpr Kernel find_integer(DataType type, ReduceOp op) {
  switch (type) {
// clang-format off
#define TUTTI_INTEGER(group, enumerator, number, bytes, storage) case DataType::enumerator: return find_sized<storage>(op);
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) case DataType::enumerator: break;
#define TUTTI_SMALL TUTTI_FLOATING
#define TUTTI_COMPLEX TUTTI_FLOATING
#include "plan/types.inc"
    // clang-format on
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "exec/dispatch.h"
namespace tutti {
Kernel integer_kernel(Target target, DataType type, ReduceOp op) {
  return TUTTI_ON_TARGET(target, find_integer(type, op));
}
}  // namespace tutti
#endif
