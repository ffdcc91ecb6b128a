// Which instruction sets Highway compiles our kernels for. To be included before any of its headers.
#pragma once

// Two x86 levels and the portable one: each costs compile time, and CPUs between them are out of service.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
