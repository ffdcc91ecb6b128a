// One pass over memory on the CPU: reduces m sources in a fixed order and stores the result to k destinations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/loop.h"
#include "plan/types.h"

namespace tutti {

/// One operand: its start, and whether a pre-multiplied sum scales it, by which factor (bits of the type); of a
/// weighted pass, the factor is weight_bits(). Has no initialisers, so that an array of sources costs nothing;
/// construct it with braces.
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
  int divisor = 1;            ///< average: divisor of the sum, at its end; otherwise 1
  Loop loop = Loop::plain;    ///< a pass with nontemporal stores ends with a store fence
  bool weighted = false;      ///< average of floats, with weights: see kernels/ops.h
  std::uint8_t halvings = 0;  ///< weighted: of the result
  UserFunction user = {};     ///< of ReduceOp::user
};

/// destination[i] = source0[i] op source1[i] op …, from left to right. 16- and 8-bit floats accumulate in float32 and
/// are rounded once, to nearest even; integers wrap, their average truncates; the average of floats is finite if they
/// are; min and max: −0 < +0 and NaN wins. Any alignment. The vector code gives the bits of the scalar definition in
/// kernels/ops.h.
void reduce_pass(const Pass& pass);

/// Whether averages of the type are made of weighted passes where sums are kept on the way: of all floats.
constexpr bool averages_by_weights(DataType type) {
  return group_of(type) != TypeGroup::integer;
}
/// The weight of a source that is kept halved so often.
std::uint64_t weight_bits(DataType type, int halvings);

/// A reduce_pass over so few bytes that they fit the first-level cache, of operands that are not scaled: what can be
/// found out before the data is there is found out by the constructor.
class SmallPass {
 public:
  SmallPass() = default;
  /// The operands must outlive this object. `pass.loop` must be plain.
  explicit SmallPass(const Pass& pass);
  void run() const;

 private:
  Pass pass_;
  void (*kernel_)(const struct KernelArgs&) = nullptr;  // null: a copy
};

/// Copies one unscaled source to every destination, and reads it once. Does not write a destination equal to the
/// source.
void copy_pass(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes, Loop loop);

}  // namespace tutti
