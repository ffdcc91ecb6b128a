// Kernels of weighted passes, which averages of floats are made of where sums are kept on the way.
#include "exec/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/kernel_weighted.cpp"
#include "hwy/foreach_target.h"  // includes this file again for each target

#include "exec/kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti {
namespace HWY_NAMESPACE {

constexpr Kernel find_weighted(DataType type) {
  switch (type) {
// clang-format off
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) case DataType::enumerator: return weighted_kernel_of<storage>;
#define TUTTI_INTEGER(group, enumerator, number, bytes, storage) case DataType::enumerator: break;
#define TUTTI_COMPLEX TUTTI_INTEGER
#define TUTTI_SMALL TUTTI_FLOATING
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
Kernel weighted_kernel(Target target, DataType type) {
  return TUTTI_ON_TARGET(target, find_weighted(type));
}
}  // namespace tutti
#endif
