// The definition of reductions: element types and operators, for host and device.
//
// The scalar code here is the reference; vector and device versions give the same bits (except for a NaN's payload).
// Compile it without contraction (-ffp-contract=off, -fmad=false).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// Scales a contribution to a pre-multiplied sum: the product, rounded to the type.
template <class T>
TUTTI_HOST_DEVICE T scale(T value, T factor) {
  return narrow<T>(Prod{}(widen(value), widen(factor)));
}

/// One element of a pass: load(0) op load(1) op …, from left to right, rounded once; the divisor is 1 except at the end
/// of an average.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable  // `load` may be for host or device only
#endif
template <class Op, class Load>
TUTTI_HOST_DEVICE auto reduce_scalar(const Load& load, int sources, int divisor) {
  using T = decltype(load(0));
  Accumulate<T> result = widen(load(0));
  for (int i = 1; i < sources; ++i) result = Op{}(result, widen(load(i)));
  return narrow<T>(divisor == 1 ? result : divide(result, divisor));
}

}  // namespace tutti
