// Kernels of 16- and 8-bit floats.
#include "exec/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/kernel_small_float.cpp"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include "exec/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

constexpr Kernel find_small_float(DataType type, ReduceOp op) {
  const auto i = static_cast<std::size_t>(op);
  switch (type) {
    case DataType::float16: return kernels_of<Float16>[i];
    case DataType::bfloat16: return kernels_of<Bfloat16>[i];
    case DataType::float8_e4m3: return kernels_of<Float8E4m3>[i];
    default: return kernels_of<Float8E5m2>[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tutti
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "exec/dispatch.h"
namespace tutti {
Kernel small_float_kernel(Target target, DataType type, ReduceOp op) {
  return TUTTI_ON_TARGET(target, find_small_float(type, op));
}
}  // namespace tutti
#endif
