// Kernels of the integers. Signed and unsigned ones share what gives the same bits.
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
  return sign_counts ? kernels_of<T>[i] : kernels_of<std::make_unsigned_t<T>>[i];
}

constexpr Kernel find_integer(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::int8: return find_sized<std::int8_t>(op);
    case DataType::uint8: return find_sized<std::uint8_t>(op);
    case DataType::int32: return find_sized<std::int32_t>(op);
    case DataType::uint32: return find_sized<std::uint32_t>(op);
    case DataType::int64: return find_sized<std::int64_t>(op);
    default: return find_sized<std::uint64_t>(op);
  }
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
