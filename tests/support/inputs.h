// What each rank contributes, as a function of rank and index: any rank can say what any other one has.
#pragma once

#include <algorithm>
#include <cmath>

#include "support/elements.h"

namespace tutti::testing {

enum class Values {
  bits,     ///< any bits: for what is only copied
  exact,    ///< every order of reduction gives the same bits
  random,   ///< floating: exponents −20 … 20, so that the order shows in the last bits
  special,  ///< floating: NaN, infinities and zeros of both signs among exact values
};

struct Inputs {
  tuttiDataType_t type = tuttiFloat32;
  Op op = Op::sum;
  Values values = Values::exact;
  int ranks = 1;
  std::uint64_t seed = 0;
  int combined = 0;  ///< by a prefix reduction: the inputs of so many ranks; 0: of all
};

namespace inputs {

template <class T>
T any_bits(std::uint64_t random) {
  T value;
  std::memcpy(&value, &random, sizeof value);
  return value;
}

/// The largest whole number that each rank may contribute so that all sums are exact; 0: not even 1.
template <class T>
int whole_max(const Inputs& in) {
  return (1 << std::min(Precision<T>::digits, 10)) / in.ranks;
}

inline bool scales(const Inputs& in) {
  return in.op == Op::pre_mul_sum;
}

template <class T>
T exact_float(const Inputs& in, int rank, std::size_t index, std::uint64_t random) {
  if (in.op == Op::max || in.op == Op::min) {
    const T value = any_bits<T>(random);
    const bool zero = widen(value) == 0;  // signs of zero are for special values
    return is_nan(value) || zero ? from_double<T>(1) : value;
  }
  if (in.op == Op::prod) {
    const double factor = random % 2 == 0 ? 1 : (rank % 2 == 0 ? 2 : 0.5);
    return from_double<T>(random % 4 < 2 ? factor : -factor);
  }
  const int most = whole_max<T>(in) / (scales(in) && whole_max<T>(in) > 1 ? 2 : 1);
  if (most > 0) return from_double<T>(static_cast<double>(random % (2 * most + 1)) - most);
  const int some = 1 << std::min(Precision<T>::digits, 10);  // so many ranks may contribute 1
  const auto place = (static_cast<std::size_t>(rank) + index) % static_cast<std::size_t>(in.ranks);
  return from_double<T>(place < static_cast<std::size_t>(some) ? static_cast<double>(random % 3) - 1 : 0);
}

template <class T>
T random_float(const Inputs& in, std::uint64_t random) {
  const double fraction = static_cast<double>(random >> 12) * 0x1p-52;
  const double sign = random & 1 ? -1 : 1;
  if (in.op == Op::prod) return from_double<T>(sign * (0.7 + 0.7 * fraction));
  const int most = std::min(20, Precision<T>::exponent_max - 3 - (scales(in) ? 1 : 0));
  const int exponent = static_cast<int>(mix(random) % static_cast<std::uint64_t>(2 * most + 1)) - most;
  return from_double<T>(sign * std::ldexp(1 + fraction, exponent));
}

template <class T>
T special_float(const Inputs& in, int rank, std::size_t index, std::uint64_t random) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch ((random >> 8) % 32) {
    case 0: return from_double<T>(std::numeric_limits<double>::quiet_NaN());
    case 1: return from_double<T>(random & 1 ? infinity : -infinity);
    case 2:
    case 3: return exact_float<T>(in, rank, index, random);
    default: return from_double<T>(random & 1 ? -0.0 : 0.0);
  }
}

}  // namespace inputs

/// Element `index` of the send buffer of `rank`.
template <class T>
T input(const Inputs& in, int rank, std::size_t index) {
  const std::uint64_t random = mix(index, in.seed, static_cast<std::uint64_t>(rank));
  if (in.values == Values::bits) return inputs::any_bits<T>(random);
  if constexpr (!Precision<T>::floating)
    return inputs::any_bits<T>(random);
  else
    switch (in.values) {
      case Values::random: return inputs::random_float<T>(in, random);
      case Values::special: return inputs::special_float<T>(in, rank, index, random);
      default: return inputs::exact_float<T>(in, rank, index, random);
    }
}

/// What the pre-multiplied sum of `rank` multiplies by.
template <class T>
T scalar(const Inputs& in, int rank) {
  const std::uint64_t random = mix(in.seed, static_cast<std::uint64_t>(rank), 77);
  if constexpr (!Precision<T>::floating)
    return inputs::any_bits<T>(random);
  else {
    if (in.values == Values::random) return from_double<T>(0.5 + static_cast<double>(random >> 12) * 0x1p-52);
    const bool wide = inputs::whole_max<T>(in) > 1;
    return from_double<T>((rank % 2 == 0 ? 1 : -1) * (wide && random % 2 == 0 ? 2 : 1));
  }
}

}  // namespace tutti::testing
