// The definition of reductions: element types and operators, for host and device.
//
// The scalar code here is the reference; vector and device versions give the same bits (except for a NaN's payload).
// Compile it without contraction (-ffp-contract=off, -fmad=false).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plan/action.h"
#include "plan/types.h"

#if defined(__CUDACC__)
#define TUTTI_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TUTTI_HOST_DEVICE inline
#endif

namespace tutti {

/// The layout of a small float: sign, exponent, mantissa. Its values are a subset of float32's.
///
/// Conversion rounds to nearest even. Values that are too large become infinity, or NaN in a format without infinity
/// (`finite`: OCP e4m3fn, largest value 448).
template <int ExponentBits, int MantissaBits, bool Finite>
struct SmallFloatFormat {
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr bool finite = Finite;
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr int shift = 23 - MantissaBits;  ///< from a float32 mantissa to this one
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias)
                                          << 23;  ///< between the exponents, in float32 bits
  static constexpr std::uint32_t magnitude = (1u << (ExponentBits + MantissaBits)) - 1;
  static constexpr std::uint32_t exponent_mask = magnitude & ~((1u << MantissaBits) - 1);
  static constexpr std::uint32_t nan = Finite ? magnitude : exponent_mask | 1u << (MantissaBits - 1);
  static constexpr std::uint32_t overflow = Finite ? magnitude : exponent_mask;
  /// float32 bits of the largest value.
  static constexpr std::uint32_t largest = ((overflow - 1) << shift) + rebias;
  /// float32 bits of: the smallest normal value; the step between subnormals; the value whose last place is that step.
  static constexpr std::uint32_t normal_min = static_cast<std::uint32_t>(128 - bias) << 23;
  static constexpr std::uint32_t subnormal_step = static_cast<std::uint32_t>(128 - bias - MantissaBits) << 23;
  static constexpr std::uint32_t subnormal_magic = static_cast<std::uint32_t>(128 - bias - MantissaBits + 23) << 23;
};

template <class FormatOf, class Bits>
struct SmallFloat {
  using Format = FormatOf;
  Bits bits;
};

using Float16 = SmallFloat<SmallFloatFormat<5, 10, false>, std::uint16_t>;
using Bfloat16 = SmallFloat<SmallFloatFormat<8, 7, false>, std::uint16_t>;
using Float8E4m3 = SmallFloat<SmallFloatFormat<4, 3, true>, std::uint8_t>;
using Float8E5m2 = SmallFloat<SmallFloatFormat<5, 2, false>, std::uint8_t>;

template <class T>
inline constexpr bool is_small_float = false;
template <class Format, class Bits>
inline constexpr bool is_small_float<SmallFloat<Format, Bits>> = true;

/// A complex number, its parts as C and Fortran lay them out.
template <class T>
struct Complex {
  T re, im;
};

/// The type in which values of a type are combined.
template <class T>
using Accumulate = std::conditional_t<is_small_float<T>, float, T>;

TUTTI_HOST_DEVICE std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

TUTTI_HOST_DEVICE float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Exact.
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> widen(T value) {
  if constexpr (is_small_float<T>) {
    using F = typename T::Format;
    const std::uint32_t magnitude = value.bits & F::magnitude;
    const std::uint32_t sign = (value.bits ^ magnitude) << (31 - F::exponent_bits - F::mantissa_bits);
    std::uint32_t bits = (magnitude << F::shift) + F::rebias;
    if constexpr (F::exponent_bits < 8) {
      if (magnitude < (1u << F::mantissa_bits))
        bits = float_bits(static_cast<float>(magnitude) * float_of(F::subnormal_step));
      if (magnitude >= (F::finite ? F::nan : F::exponent_mask)) bits = (magnitude << F::shift) | 0x7f800000u;
    }
    return float_of(bits | sign);
  } else {
    return value;
  }
}

/// To nearest, ties to even.
template <class T>
TUTTI_HOST_DEVICE T narrow(Accumulate<T> value) {
  if constexpr (is_small_float<T>) {
    using F = typename T::Format;
    const std::uint32_t magnitude = float_bits(value) & 0x7fffffffu;
    const std::uint32_t sign = (float_bits(value) ^ magnitude) >> (31 - F::exponent_bits - F::mantissa_bits);
    std::uint32_t bits;
    if (magnitude > 0x7f800000u) {
      bits = F::nan;
    } else if (F::exponent_bits < 8 && magnitude < F::normal_min) {
      bits = float_bits(float_of(magnitude) + float_of(F::subnormal_magic)) - F::subnormal_magic;
    } else {
      bits = magnitude - F::rebias;
      bits = (bits + (1u << (F::shift - 1)) - 1 + ((bits >> F::shift) & 1)) >> F::shift;
      if (bits > F::overflow) bits = F::overflow;
    }
    using Bits = decltype(T::bits);
    return T{static_cast<Bits>(bits | sign)};
  } else {
    return value;
  }
}

/// Integers wrap.
struct Sum {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      using U = std::make_unsigned_t<A>;
      return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      using U = std::make_unsigned_t<A>;
      return static_cast<A>(static_cast<U>(static_cast<U>(a) * static_cast<U>(b)));
    } else {
      return a * b;
    }
  }
};

TUTTI_HOST_DEVICE bool is_negative(float value) {
  return float_bits(value) >> 31 != 0;
}
TUTTI_HOST_DEVICE bool is_negative(double value) {
  std::uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 != 0;
}

TUTTI_HOST_DEVICE bool is_nan(float value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}
TUTTI_HOST_DEVICE bool is_nan(double value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

/// NaN wins; −0 < +0.
struct Max {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    if constexpr (std::is_floating_point_v<A>) {
      if (is_nan(a)) return a;
      if (is_nan(b)) return b;
      if (a == b) return is_negative(a) ? b : a;
    }
    return a < b ? b : a;
  }
};

struct Min {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    if constexpr (std::is_floating_point_v<A>) {
      if (is_nan(a)) return a;
      if (is_nan(b)) return b;
      if (a == b) return is_negative(a) ? a : b;
    }
    return b < a ? b : a;
  }
};

/// Bitwise and logical operators, of integers. Logical ones take every number but 0 for true, and give 0 or 1.
struct BitAnd {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>(a & b);
  }
};
struct BitOr {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>(a | b);
  }
};
struct BitXor {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>(a ^ b);
  }
};
struct LogicalAnd {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>(a != 0 && b != 0 ? 1 : 0);
  }
};
struct LogicalOr {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>((a | b) != 0 ? 1 : 0);
  }
};
struct LogicalXor {
  template <class A>
  TUTTI_HOST_DEVICE A operator()(A a, A b) const {
    return static_cast<A>((a != 0) != (b != 0) ? 1 : 0);
  }
};

/// The product of complex numbers, from their parts and without looking after infinities.
template <class T>
TUTTI_HOST_DEVICE Complex<T> product(Complex<T> a, Complex<T> b) {
  return {.re = a.re * b.re - a.im * b.im, .im = a.re * b.im + a.im * b.re};
}

/// The end of an average. Integers truncate.
template <class A>
TUTTI_HOST_DEVICE A divide(A sum, int divisor) {
  if constexpr (std::is_integral_v<A>) {
    using Wide = std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>;
    return static_cast<A>(static_cast<Wide>(sum) / static_cast<Wide>(divisor));
  } else {
    return sum / static_cast<A>(divisor);
  }
}

// Averages of floats. A sum can be infinite where the average is not. So a block that holds the sum of m inputs is kept
// halved halvings_of(m) times (plan/action.h), which makes it no larger than the largest of them.
//
// A pass multiplies each source by its weight, which makes it the sum that it stands for, and adds these up. The last
// pass divides by the number of inputs, the others halve. A pass over inputs alone needs no weights, as they are 1.
//
// If the sum is infinite, it is made again, each operand halved as often as the result; small floats once more, as
// their rounding on the way can make a sum larger than it is. For the same reason what exceeds their largest value is
// that value. Halving loses nothing but bits of the smallest values.

TUTTI_HOST_DEVICE bool is_finite(float value) {
  return (float_bits(value) & 0x7f800000u) != 0x7f800000u;
}
TUTTI_HOST_DEVICE bool is_finite(double value) {
  std::uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

/// 2^exponent, which must be a normal number.
template <class A>
TUTTI_HOST_DEVICE A power_of_two(int exponent) {
  if constexpr (sizeof(A) == sizeof(double)) {
    const std::uint64_t bits = static_cast<std::uint64_t>(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return float_of(static_cast<std::uint32_t>(127 + exponent) << 23);
  }
}

/// Whether a sum of few values can be infinite in the type in which they are combined.
template <class T>
inline constexpr bool sum_can_overflow = std::is_floating_point_v<T>;
template <class Format, class Bits>
inline constexpr bool sum_can_overflow<SmallFloat<Format, Bits>> = Format::exponent_bits == 8;

/// What a source that is halved so often is multiplied by.
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> weight(int halvings) {
  return power_of_two<Accumulate<T>>(halvings);
}

/// No more than the largest value of a small float, but for what is infinite.
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> within_range(Accumulate<T> value, Accumulate<T> scale) {
  if constexpr (is_small_float<T>) {
    const float limit = float_of(T::Format::largest) * scale;
    if (is_finite(value) && value > limit) return limit;
    if (is_finite(value) && value < -limit) return -limit;
  }
  return value;
}

/// The end of a pass with weights, before the result is rounded. `divisor`: 1 except at the end of the average;
/// `halvings`: of the result.
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> finish_average(Accumulate<T> sum, int divisor, int halvings) {
  using A = Accumulate<T>;
  return within_range<T>(divisor == 1 ? sum * power_of_two<A>(-halvings) : divide(sum, divisor), A{1});
}

template <class T>
inline constexpr int extra_halvings = is_small_float<T> ? 1 : 0;

/// What operands are multiplied by, beside their weight, if the sum is made again.
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> half_for(int divisor, int halvings) {
  return power_of_two<Accumulate<T>>(-(divisor == 1 ? halvings : halvings_of(divisor)) - extra_halvings<T>);
}

/// As finish_average(), of such a sum; `half`: half_for().
template <class T>
TUTTI_HOST_DEVICE Accumulate<T> finish_halved(Accumulate<T> sum, int divisor, Accumulate<T> half) {
  using A = Accumulate<T>;
  const A left = divisor == 1 ? power_of_two<A>(-extra_halvings<T>) : static_cast<A>(divisor) * half;
  return within_range<T>(sum, left) / left;
}

/// Scales a contribution to a pre-multiplied sum: the product, rounded to the type.
template <class T>
TUTTI_HOST_DEVICE T scale(T value, T factor) {
  return narrow<T>(Prod{}(widen(value), widen(factor)));
}

/// One element of a pass: load(0) op load(1) op …, from left to right, rounded once; the divisor is 1 except in an
/// average of inputs alone.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable  // `load` may be for host or device only
#endif
template <class Op, class Load>
TUTTI_HOST_DEVICE auto reduce_scalar(const Load& load, int sources, int divisor) {
  using T = decltype(load(0));
  Accumulate<T> result = widen(load(0));
  for (int i = 1; i < sources; ++i) result = Op{}(result, widen(load(i)));
  if (divisor == 1) return narrow<T>(result);
  if constexpr (sum_can_overflow<T>) {
    if (!is_finite(result)) {
      const Accumulate<T> half = half_for<T>(divisor, 0);
      result = widen(load(0)) * half;
      for (int i = 1; i < sources; ++i) result += widen(load(i)) * half;
      return narrow<T>(finish_halved<T>(result, divisor, half));
    }
  }
  return narrow<T>(divide(result, divisor));
}

/// One element of a pass of an average with weights; weight_of(i): of load(i).
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class Load, class WeightOf>
TUTTI_HOST_DEVICE auto average_scalar(const Load& load, const WeightOf& weight_of, int sources, int divisor,
                                      int halvings) {
  using T = decltype(load(0));
  Accumulate<T> result = widen(load(0)) * weight_of(0);
  for (int i = 1; i < sources; ++i) result += widen(load(i)) * weight_of(i);
  if constexpr (sum_can_overflow<T>) {
    if (!is_finite(result)) {
      const Accumulate<T> half = half_for<T>(divisor, halvings);
      result = widen(load(0)) * (weight_of(0) * half);
      for (int i = 1; i < sources; ++i) result += widen(load(i)) * (weight_of(i) * half);
      return narrow<T>(finish_halved<T>(result, divisor, half));
    }
  }
  return narrow<T>(finish_average<T>(result, divisor, halvings));
}

}  // namespace tutti
