// What an element of each type is: its name, its size, and how numbers become its bits.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace perf {

struct Type {
  tuttiDataType_t id;
  std::string_view name;  ///< as nccl-tests spells it
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
/// The number that the bits of a float stand for. NaN and infinities come out as such.
double decode(const Type& type, std::uint64_t bits);

/// Reads and writes one element's bits.
std::uint64_t load(const Type& type, const void* at);
void store(const Type& type, void* at, std::uint64_t bits);

/// Well mixed 64 bits of (a, b, c): the source of all data here.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace perf
