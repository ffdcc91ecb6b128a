// The element types and operators of the public interface, as tests need them: names, sizes, values.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/ops.h"
#include "plan/types.h"
#include "tutti/tutti.h"

namespace tutti::testing {

/// A pre-multiplied sum has no number of its own in the public interface: each rank makes one.
enum class Op { sum, prod, max, min, avg, pre_mul_sum };
inline constexpr int op_count = 6;
const char* name(Op op);

const char* name(tuttiDataType_t type);
std::size_t size_of(tuttiDataType_t type);

/// All types in the order of plan/types.inc.
constexpr tuttiDataType_t type_at(std::size_t place) {
  return static_cast<tuttiDataType_t>(type_facts[place].number);
}
constexpr DataType internal(tuttiDataType_t type) {
  return *type_of_number(type);
}

/// The types of real numbers, which come first; tests of operators look at the complex ones.
inline constexpr int real_type_count = 0
// NOLINTBEGIN(bugprone-macro-parentheses): terms of a sum
#define TUTTI_INTEGER(...) +1
#define TUTTI_FLOATING(...) +1
#define TUTTI_SMALL(...) +1
// NOLINTEND(bugprone-macro-parentheses)
#include "plan/types.inc"
    ;

/// Calls `f` with a null pointer to the storage type; of complex types, to bytes.
template <class F>
decltype(auto) with_type(tuttiDataType_t type, F&& f) {
  switch (internal(type)) {
// clang-format off
// NOLINTNEXTLINE(bugprone-macro-parentheses): a type
#define TUTTI_INTEGER(group, enumerator, number, bytes, storage) case DataType::enumerator: return f(static_cast<storage*>(nullptr));
#define TUTTI_FLOATING TUTTI_INTEGER
#define TUTTI_SMALL TUTTI_INTEGER
#define TUTTI_COMPLEX(group, enumerator, number, bytes, storage) case DataType::enumerator:  // the last ones
#include "plan/types.inc"
    // clang-format on
    break;
  }
  return f(static_cast<std::uint8_t*>(nullptr));
}

/// What a type can say exactly.
template <class T>
struct Precision {
  static constexpr bool floating = !std::is_integral_v<T>;
  static constexpr int digits = [] {  // significant bits
    if constexpr (is_small_float<T>)
      return T::Format::mantissa_bits + 1;
    else
      return std::numeric_limits<T>::digits;
  }();
  static constexpr int exponent_max = [] {  // 2^exponent_max is well below the largest value, its inverse normal
    if constexpr (is_small_float<T>)
      return std::min(T::Format::bias, static_cast<int>(T::Format::largest >> 23) - 127) - 1;
    else if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::max_exponent - 2;
    else
      return 0;
  }();
};

/// The type's value nearest to a number.
template <class T>
T from_double(double value) {
  if constexpr (is_small_float<T>)
    return narrow<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// The largest finite value.
template <class T>
T largest() {
  if constexpr (is_small_float<T>)
    return narrow<T>(float_of(T::Format::largest));
  else
    return std::numeric_limits<T>::max();
}

template <class T>
long double to_long_double(T value) {
  return static_cast<long double>(widen(value));
}

template <class T>
bool is_nan(T value) {
  if constexpr (is_small_float<T> || std::is_floating_point_v<T>) {
    const auto wide = widen(value);
    return std::isnan(wide);
  } else {
    return false;
  }
}

template <class T>
bool same_bits(T a, T b) {
  using Bits = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

/// Any alignment.
template <class T>
T load(const std::byte* at, std::size_t index) {
  T value;
  std::memcpy(&value, at + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* at, std::size_t index, T value) {
  std::memcpy(at + index * sizeof(T), &value, sizeof(T));
}

/// A good mix of all bits; different for every combination of arguments.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + c * 0x165667b19e3779f9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace tutti::testing
