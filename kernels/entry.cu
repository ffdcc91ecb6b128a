// The entries of one body for one group of types. TUTTI_BODY and TUTTI_GROUP are set by the compiler's command line, so
// that many groups can be compiled at once.
#include "kernels/cuda_block.cuh"
#include "kernels/entries.h"
#include "kernels/one_shot.h"
#include "kernels/ops.h"
#include "kernels/run_plan.h"
#include "kernels/two_shot.h"

// Groups as in image.cpp.
#define TUTTI_TYPES_integer(entry)                                                                            \
  entry(int8, std::int8_t) entry(uint8, std::uint8_t) entry(int32, std::int32_t) entry(uint32, std::uint32_t) \
      entry(int64, std::int64_t) entry(uint64, std::uint64_t)
#define TUTTI_TYPES_floating(entry) entry(float32, float) entry(float64, double)
#define TUTTI_TYPES_small(entry)                                                                              \
  entry(float16, ::tutti::Float16) entry(bfloat16, ::tutti::Bfloat16) entry(float8_e4m3, ::tutti::Float8E4m3) \
      entry(float8_e5m2, ::tutti::Float8E5m2)

#define TUTTI_JOIN(a, b) a##b
#define TUTTI_NAME(body, type) TUTTI_JOIN(tutti_##body##_, type)
#define TUTTI_DEFINE(body, type, storage)                                          \
  extern "C" __global__ void __launch_bounds__(::tutti::device::block_threads, 1)  \
      TUTTI_NAME(body, type)(const __grid_constant__ ::tutti::device::Call call) { \
    __shared__ ::tutti::device::Shared<::tutti::device::Body::body> shared;        \
    ::tutti::device::CudaBlock block(call.meet == 0);                              \
    ::tutti::device::body<storage>(block, shared, call);                           \
  }
#define TUTTI_ENTRY(type, storage) TUTTI_EXPAND(TUTTI_BODY, type, storage)
#define TUTTI_EXPAND(body, type, storage) TUTTI_DEFINE(body, type, storage)
#define TUTTI_TYPES(group) TUTTI_JOIN(TUTTI_TYPES_, group)

TUTTI_TYPES(TUTTI_GROUP)(TUTTI_ENTRY)
