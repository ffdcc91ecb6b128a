// One pass over memory on the CPU: m sources in a fixed order, k destinations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/types.h"

namespace tutti {

/// One operand: where it starts, and whether a pre-multiplied sum scales it, by which factor (bits of the type).
/// Without initialisers, so that an array of them costs nothing: to be made with braces.
struct Source {
  const std::byte* at;
  bool scaled;
  std::uint64_t scalar;
};

struct Pass {
  std::span<const Source> sources;           ///< 1 … limits::sources_max
  std::span<std::byte* const> destinations;  ///< may equal sources, element for element; never overlap them otherwise
  std::size_t count = 0;                     ///< elements
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  int divisor = 1;      ///< average: what the sum is divided by; else 1
  bool stream = false;  ///< non-temporal stores; the pass ends in a store fence
};

/// destination[i] = source0[i] op source1[i] op …, from left to right. 16- and 8-bit floats accumulate in float32 and
/// are rounded once, to nearest even; integers wrap, their average truncates; min and max: −0 < +0 and NaN wins. Any
/// alignment. The vector code gives the bits of the scalar definition in kernels/ops.h.
void reduce_pass(const Pass& pass);

/// One unscaled source to every destination, read once. A destination equal to the source is left alone.
void copy_pass(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes, bool stream);

/// "AVX-512", "AVX2", …: what the running CPU was given.
const char* vector_target();

}  // namespace tutti
