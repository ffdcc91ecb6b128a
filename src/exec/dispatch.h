// Maps a Target to the code that Highway compiled for it. To be included after all targets of a file are compiled.
#pragma once

#include "exec/kernel.h"
#include "hwy/highway.h"

// A build for a newer CPU (-march) leaves out older targets.
#if HWY_TARGETS & HWY_AVX3
#define TUTTI_ON_AVX512(target, call) (target) == ::tutti::Target::avx512 ? ::tutti::N_AVX3::call:
#else
#define TUTTI_ON_AVX512(target, call)
#endif
#if HWY_TARGETS & HWY_AVX2
#define TUTTI_ON_AVX2(target, call) (target) == ::tutti::Target::avx2 ? ::tutti::N_AVX2::call:
#else
#define TUTTI_ON_AVX2(target, call)
#endif

// Makes `call` in the namespace of the target.
#define TUTTI_ON_TARGET(target, call) \
  (TUTTI_ON_AVX512(target, call) TUTTI_ON_AVX2(target, call)::tutti::HWY_STATIC_DISPATCH(call))
