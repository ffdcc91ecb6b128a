// The vector code behind reduce_pass: which kernels there are, by instruction set, type and operator.
#pragma once

#include <cstddef>
#include <span>

#include "exec/reduce.h"
#include "plan/types.h"

namespace tutti {

/// Instruction sets that kernels are built for. Others than `portable` may not run here.
enum class Target : std::uint8_t { portable, avx2, avx512 };
inline constexpr int target_count = 3;

/// What the running CPU has; the best of it is the last.
std::span<const Target> targets();
const char* name(Target target);

/// The operands of a pass. `scaled` of the sources is looked at by kernels of pre_mul_sum alone, `divisor` by avg
/// alone.
struct KernelArgs {
  const Source* sources = nullptr;
  std::size_t sources_count = 0;
  std::byte* const* destinations = nullptr;
  std::size_t destinations_count = 0;
  /// The first of the destinations: aligned to cache lines, stored past the caches.
  std::size_t streamed_count = 0;
  bool from_memory = false;  ///< too much for the caches
  bool prefetch = false;     ///< the other destinations' lines may be with another core
  std::size_t count = 0;     ///< elements
  int divisor = 1;
};
using Kernel = void (*)(const KernelArgs&);

/// One table per group of types, each a file of its own, so that they compile side by side.
Kernel integer_kernel(Target target, DataType type, ReduceOp op);
Kernel float_kernel(Target target, DataType type, ReduceOp op);
Kernel small_float_kernel(Target target, DataType type, ReduceOp op);

/// reduce_pass and copy_pass on a given target.
void reduce_pass_on(Target target, const Pass& pass);
void copy_pass_on(Target target, const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
                  bool stream);

}  // namespace tutti
