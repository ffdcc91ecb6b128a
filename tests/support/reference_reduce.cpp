#include "support/reference_reduce.h"

#include <cstring>

#include <fmt/format.h>

namespace tutti::testing {
namespace {

/// Ranks whose inputs are combined.
int combined(const Inputs& in) {
  return in.combined > 0 ? in.combined : in.ranks;
}

/// A rank's contribution as it goes into the sum.
template <class T>
T contribution(const Inputs& in, int rank, std::size_t index) {
  const T value = input<T>(in, rank, index);
  return in.op == Op::pre_mul_sum ? scale(value, scalar<T>(in, rank)) : value;
}

template <class T, class Functor>
T fold(const Inputs& in, std::size_t index) {
  Accumulate<T> result = widen(contribution<T>(in, 0, index));
  for (int rank = 1; rank < combined(in); ++rank) result = Functor{}(result, widen(contribution<T>(in, rank, index)));
  return narrow<T>(in.op == Op::avg && in.ranks > 1 ? divide(result, in.ranks) : result);
}

/// Where every order gives the same bits.
template <class T>
T exact_result(const Inputs& in, std::size_t index) {
  switch (in.op) {
    case Op::prod: return fold<T, Prod>(in, index);
    case Op::max: return fold<T, Max>(in, index);
    case Op::min: return fold<T, Min>(in, index);
    default: return fold<T, Sum>(in, index);
  }
}

struct Bounds {
  long double middle;
  long double slack;
};

template <class T>
Bounds near_result(const Inputs& in, std::size_t index) {
  long double sum = 0;
  long double sum_of_sizes = 0;
  long double product = 1;
  for (int rank = 0; rank < combined(in); ++rank) {
    const long double x = to_long_double(contribution<T>(in, rank, index));
    sum += x;
    sum_of_sizes += std::fabs(x);
    product *= x;
  }
  const long double eps = std::ldexp(1.0L, 1 - Precision<T>::digits);
  const long double tiny = std::ldexp(1.0L, -Precision<T>::exponent_max - Precision<T>::digits);
  const auto slack = [&](long double size) { return in.ranks * (eps * size + tiny); };
  if (in.op == Op::prod) return {product, slack(std::fabs(product))};
  const int divisor = in.op == Op::avg ? in.ranks : 1;
  return {sum / divisor, slack(sum_of_sizes / divisor)};
}

template <class T>
std::string words(std::size_t index, T got, long double expected) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &got, sizeof got);
  return fmt::format("element {} is {} (bits {:#x}), expected {}", index, to_long_double(got), bits, expected);
}

template <class T>
bool same(T a, T b) {
  return same_bits(a, b) || (is_nan(a) && is_nan(b));
}

template <class T>
std::string check_reduced_as(const Inputs& in, const std::byte* output, std::size_t first, std::size_t count) {
  const bool any_order = !Precision<T>::floating || in.values != Values::random || in.op == Op::max || in.op == Op::min;
  for (std::size_t i = 0; i < count; ++i) {
    const T got = load<T>(output, i);
    if (any_order) {
      const T expected = exact_result<T>(in, first + i);
      if (!same(got, expected)) return words(i, got, to_long_double(expected));
      continue;
    }
    const auto [middle, slack] = near_result<T>(in, first + i);
    if (!(std::fabs(to_long_double(got) - middle) <= slack)) return words(i, got, middle);
  }
  return {};
}

}  // namespace

std::string check_reduced(const Inputs& inputs, const std::byte* output, std::size_t first, std::size_t count) {
  return with_type(inputs.type, [&]<class T>(T*) { return check_reduced_as<T>(inputs, output, first, count); });
}

std::string check_copied(const Inputs& inputs, int rank, const std::byte* output, std::size_t first,
                         std::size_t count) {
  return with_type(inputs.type, [&]<class T>(T*) -> std::string {
    for (std::size_t i = 0; i < count; ++i) {
      const T got = load<T>(output, i);
      const T expected = input<T>(inputs, rank, first + i);
      if (!same_bits(got, expected))
        return fmt::format("{} from rank {}", words(i, got, to_long_double(expected)), rank);
    }
    return {};
  });
}

void write_inputs(const Inputs& inputs, int rank, std::byte* at, std::size_t first, std::size_t count) {
  with_type(inputs.type, [&]<class T>(T*) {
    for (std::size_t i = 0; i < count; ++i) store(at, i, input<T>(inputs, rank, first + i));
  });
}

}  // namespace tutti::testing
