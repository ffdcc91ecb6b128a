// Element types: their names, sizes, and the conversion between numbers and bits.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace perf {

struct Type {
  tuttiDataType_t id;
  std::string_view name;  ///< nccl-tests' name
  std::size_t bytes;
  bool is_signed;
  int mantissa_bits;  ///< stored bits; 0: an integer
  int exponent_max;   ///< of the largest finite number
  bool has_infinity;

  bool is_float() const { return mantissa_bits > 0; }
  int digits() const { return mantissa_bits + 1; }
  int exponent_min() const;  ///< of the smallest normal number
};

std::span<const Type> types();
const Type& type_of(tuttiDataType_t id);

/// The bits of the float nearest to `value` (ties to even); finite numbers only.
std::uint64_t encode(const Type& type, double value);
/// The number that the bits of a float represent, including NaN and infinities.
double decode(const Type& type, std::uint64_t bits);

/// Read and write one element's bits.
std::uint64_t load(const Type& type, const void* at);
void store(const Type& type, void* at, std::uint64_t bits);

/// 64 well-mixed bits of (a, b, c): the source of all data here.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace perf
