// The entries of one body for one group of types. TUTTI_BODY and TUTTI_GROUP are set by the compiler's command line, so
// that many groups can be compiled at once.
#include "kernels/bodies.h"
#include "kernels/cuda_block.cuh"
#include "kernels/entries.h"
#include "kernels/ops.h"

#define TUTTI_JOIN(a, b) a##b
#define TUTTI_NAME(body, type) TUTTI_JOIN(tutti_##body##_, type)
#define TUTTI_DEFINE(body, type, storage)                                          \
  extern "C" __global__ void __launch_bounds__(::tutti::device::block_threads, 1)  \
      TUTTI_NAME(body, type)(const __grid_constant__ ::tutti::device::Call call) { \
    __shared__ ::tutti::device::Shared<::tutti::device::Body::body> shared;        \
    ::tutti::device::CudaBlock block(call.synchronises == 0);                      \
    ::tutti::device::body<storage>(block, shared, call);                           \
  }
#define TUTTI_EXPAND(body, type, storage) TUTTI_DEFINE(body, type, storage)
#define TUTTI_ENTRY(type, storage) TUTTI_EXPAND(TUTTI_BODY, type, storage)

#define TUTTI_IS_integer 1
#define TUTTI_IS_floating 2
#define TUTTI_IS_small 3
#define TUTTI_IS(group) TUTTI_JOIN(TUTTI_IS_, group)
#define TUTTI_ENTRY_OF_integer(...)
#define TUTTI_ENTRY_OF_floating(...)
#define TUTTI_ENTRY_OF_small(...)
#if TUTTI_IS(TUTTI_GROUP) == TUTTI_IS_integer
#undef TUTTI_ENTRY_OF_integer
#define TUTTI_ENTRY_OF_integer TUTTI_ENTRY
#elif TUTTI_IS(TUTTI_GROUP) == TUTTI_IS_floating
#undef TUTTI_ENTRY_OF_floating
#define TUTTI_ENTRY_OF_floating TUTTI_ENTRY
#elif TUTTI_IS(TUTTI_GROUP) == TUTTI_IS_small
#undef TUTTI_ENTRY_OF_small
#define TUTTI_ENTRY_OF_small TUTTI_ENTRY
#else
#error "TUTTI_GROUP is an enumerator of TypeGroup"
#endif
#define TUTTI_DEVICE_TYPE(group, enumerator, number, bytes, storage) TUTTI_ENTRY_OF_##group(enumerator, storage)
#include "plan/types.inc"
