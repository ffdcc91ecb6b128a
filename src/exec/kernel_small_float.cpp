// Kernels of 16- and 8-bit floats.
#include "exec/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/kernel_small_float.cpp"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include "exec/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

constexpr Kernel find_small_float(DataType type, ReduceOp op, bool weighted) {
  switch (type) {
// clang-format off
#define TUTTI_SMALL(group, enumerator, number, bytes, storage) case DataType::enumerator: return float_kernel_of<storage>(op, weighted);
#define TUTTI_INTEGER(group, enumerator, number, bytes, storage) case DataType::enumerator: break;
#define TUTTI_FLOATING TUTTI_INTEGER
#define TUTTI_COMPLEX TUTTI_INTEGER
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
Kernel small_float_kernel(Target target, DataType type, ReduceOp op, bool weighted) {
  return TUTTI_ON_TARGET(target, find_small_float(type, op, weighted));
}
}  // namespace tutti
#endif
