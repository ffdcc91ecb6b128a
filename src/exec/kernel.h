// The vector code behind reduce_pass: the kernels by instruction set, type and operator.
#pragma once

#include <cstddef>
#include <span>

#include "exec/reduce.h"
#include "plan/types.h"

namespace tutti {

/// Instruction sets for which kernels are built. This CPU may lack all but `portable`.
enum class Target : std::uint8_t { portable, avx2, avx512 };

/// The instruction sets that this CPU has, the best one last.
std::span<const Target> targets();

/// The operands of a pass. Only kernels of pre_mul_sum read Source::scaled, and only those of avg and weighted ones
/// read `divisor`.
struct KernelArgs {
  const Source* sources = nullptr;
  std::size_t sources_count = 0;
  std::byte* const* destinations = nullptr;
  std::size_t destinations_count = 0;
  /// Number of destinations, from the first, that are aligned to cache lines and written with nontemporal stores.
  std::size_t streamed_count = 0;
  std::size_t pages = 1;  ///< how many pages of each operand are taken in turn
  bool prefetch = false;  ///< prefetch the other destinations: their cache lines may be with another core
  std::size_t count = 0;  ///< elements
  int divisor = 1;
  int halvings = 0;  ///< of the result of a weighted pass
};
using Kernel = void (*)(const KernelArgs&);

/// One table per group of types, each in its own file, so that they compile in parallel.
Kernel integer_kernel(Target target, DataType type, ReduceOp op);
/// `weighted`: of passes that averages of floats are made of where sums are kept on the way.
Kernel float_kernel(Target target, DataType type, ReduceOp op, bool weighted);
Kernel small_float_kernel(Target target, DataType type, ReduceOp op, bool weighted);
/// Of products alone: sums of complex numbers are those of their parts. For all targets the same.
Kernel complex_kernel(DataType type);

/// reduce_pass and copy_pass on a given target.
void reduce_pass_on(Target target, const Pass& pass);
void copy_pass_on(Target target, const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
                  Loop loop);

}  // namespace tutti
