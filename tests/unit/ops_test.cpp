// Are conversions exact and operators as defined? Small floats are compared with a table of all their values.
#include "kernels/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tutti {
namespace {

template <class T>
class SmallFloats : public testing::Test {
 protected:
  using F = typename T::Format;
  static constexpr std::uint32_t codes = 1u << (1 + F::exponent_bits + F::mantissa_bits);
  static constexpr std::uint32_t sign = codes / 2;

  /// By the book, from fields, in double.
  static double value_of(std::uint32_t code) {
    const int exponent = static_cast<int>((code & (sign - 1)) >> F::mantissa_bits);
    const int mantissa = static_cast<int>(code & ((1u << F::mantissa_bits) - 1));
    const int exponent_max = (1 << F::exponent_bits) - 1;
    const double s = code & sign ? -1.0 : 1.0;
    if (F::finite) {
      if (exponent == exponent_max && mantissa == (1 << F::mantissa_bits) - 1) return std::nan("");
    } else if (exponent == exponent_max) {
      return mantissa == 0 ? s * std::numeric_limits<double>::infinity() : std::nan("");
    }
    if (exponent == 0) return s * std::ldexp(mantissa, 1 - F::bias - F::mantissa_bits);
    return s * std::ldexp((1 << F::mantissa_bits) + mantissa, exponent - F::bias - F::mantissa_bits);
  }

  /// Finite values from +0 on: they ascend with their codes.
  const std::vector<double> values_ = [] {
    std::vector<double> values;
    for (std::uint32_t code = 0; code < sign && std::isfinite(value_of(code)); ++code) values.push_back(value_of(code));
    return values;
  }();

  /// The code a positive `value` rounds to: nearest in the table, on a tie the even one.
  std::uint32_t nearest(double value) const {
    const auto next = std::ranges::upper_bound(values_, value);
    const auto below = static_cast<std::uint32_t>(next - values_.begin()) - 1;
    const bool last = next == values_.end();
    // Above the last value: where the next one would be if the format went on.
    const double above = last ? 2 * values_[below] - values_[below - 1] : *next;
    const std::uint32_t up = last ? F::overflow : below + 1;
    const double to_below = value - values_[below], to_above = above - value;
    if (to_below != to_above) return to_below < to_above ? below : up;
    return below % 2 == 0 ? below : up;
  }

  static std::uint32_t narrowed(float value) { return narrow<T>(value).bits; }
};

using Types = testing::Types<Float16, Bfloat16, Float8E4m3, Float8E5m2>;
class TypeNames {
 public:
  template <class T>
  static std::string GetName(int i) {
    const char* const names[] = {"float16", "bfloat16", "float8_e4m3", "float8_e5m2"};
    return names[i];
  }
};
TYPED_TEST_SUITE(SmallFloats, Types, TypeNames);

TYPED_TEST(SmallFloats, WidenEveryCodeExactlyAndComeBack) {
  using Bits = decltype(TypeParam::bits);
  for (std::uint32_t code = 0; code < this->codes; ++code) {
    const float wide = widen(TypeParam{static_cast<Bits>(code)});
    const double expected = this->value_of(code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(wide)) << code;
      EXPECT_TRUE(std::isnan(this->value_of(this->narrowed(wide)))) << code;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), expected) << code;
    ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << code;
    ASSERT_EQ(this->narrowed(wide), code);
  }
}

// Between neighbours there are four kinds of values: below the middle, the middle, above it, and next to either end.
TYPED_TEST(SmallFloats, RoundToNearestEven) {
  const auto count = static_cast<std::uint32_t>(this->values_.size());
  for (std::uint32_t code = 0; code < count; ++code) {
    const double low = this->values_[code];
    const double high = code + 1 < count ? this->values_[code + 1] : 2 * low - this->values_[code - 1];
    const auto middle = static_cast<float>((low + high) / 2);
    const float huge = std::numeric_limits<float>::infinity();
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, huge),
                              std::nextafter(static_cast<float>(low), huge), std::nextafter(middle / 2, huge)}) {
      if (!std::isfinite(value) || static_cast<double>(value) > high) continue;
      ASSERT_EQ(this->narrowed(value), this->nearest(value)) << value;
      ASSERT_EQ(this->narrowed(-value), this->nearest(value) | this->sign) << value;
    }
  }
}

TYPED_TEST(SmallFloats, TooLargeIsInfinityOrNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const double last = this->values_.back();
  const double half_step = (last - *(this->values_.end() - 2)) / 2;
  const auto first_over = static_cast<float>(last + half_step);  // a tie: rounds away where the last code is odd
  for (const float value : {infinity, std::numeric_limits<float>::max(), std::nextafter(first_over, infinity)}) {
    EXPECT_EQ(this->narrowed(value), TypeParam::Format::overflow) << value;
    EXPECT_EQ(this->narrowed(-value), TypeParam::Format::overflow | this->sign) << value;
  }
  const bool odd = this->values_.size() % 2 == 0;
  EXPECT_EQ(this->narrowed(first_over), odd ? TypeParam::Format::overflow : this->values_.size() - 1);
  EXPECT_EQ(std::isnan(this->value_of(TypeParam::Format::overflow)), TypeParam::Format::finite);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(this->value_of(this->narrowed(float_of(bits))))) << bits;
}

TEST(Operators, IntegersWrap) {
  EXPECT_EQ(Sum{}(std::int8_t{127}, std::int8_t{1}), -128);
  EXPECT_EQ(Sum{}(std::numeric_limits<std::int64_t>::max(), std::int64_t{1}), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Prod{}(std::int32_t{1 << 30}, std::int32_t{4}), 0);
  EXPECT_EQ(Prod{}(std::uint8_t{255}, std::uint8_t{255}), 1);
  EXPECT_EQ(Prod{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}),
            std::numeric_limits<std::int64_t>::min());
}

TEST(Operators, AveragesOfIntegersTruncate) {
  EXPECT_EQ(divide(std::int8_t{-7}, 2), -3);
  EXPECT_EQ(divide(std::int8_t{-128}, 200), 0) << "the divisor is not narrowed";
  EXPECT_EQ(divide(std::uint64_t{0xffffffffffffffff}, 2), 0x7fffffffffffffffu);
  EXPECT_EQ(divide(std::uint32_t{0xffffffff}, 65535), 65537u);
}

template <class A>
void expect_order_of_floats() {
  const A nan = std::numeric_limits<A>::quiet_NaN();
  EXPECT_TRUE(std::signbit(Min{}(A(0), -A(0))) && std::signbit(Min{}(-A(0), A(0))));
  EXPECT_FALSE(std::signbit(Max{}(A(0), -A(0))) || std::signbit(Max{}(-A(0), A(0))));
  EXPECT_TRUE(std::signbit(Max{}(-A(0), -A(0))));
  for (const A other : {A(1), -std::numeric_limits<A>::infinity(), std::numeric_limits<A>::infinity()}) {
    EXPECT_TRUE(std::isnan(Min{}(nan, other)) && std::isnan(Min{}(other, nan)));
    EXPECT_TRUE(std::isnan(Max{}(nan, other)) && std::isnan(Max{}(other, nan)));
  }
  EXPECT_EQ(Min{}(A(-2), A(1)), -2);
  EXPECT_EQ(Max{}(A(-2), A(1)), 1);
}

TEST(Operators, MinAndMaxKnowZeroesAndNaN) {
  expect_order_of_floats<float>();
  expect_order_of_floats<double>();
}

TEST(Operators, SmallFloatsAreRoundedOnce) {
  // 256 + 1 + 1 in bfloat16: each sum alone would be rounded back to 256.
  const Bfloat16 values[] = {narrow<Bfloat16>(256), narrow<Bfloat16>(1), narrow<Bfloat16>(1)};
  EXPECT_EQ(widen(reduce_scalar<Sum>([&](int i) { return values[i]; }, 3, 1)), 258);
}

TEST(Operators, ScalingRoundsTheProduct) {
  const Bfloat16 third = narrow<Bfloat16>(1.0f / 3);
  const float exact = widen(third) * widen(third);
  EXPECT_NE(widen(scale(third, third)), exact);
  EXPECT_EQ(scale(third, third).bits, narrow<Bfloat16>(exact).bits);
  EXPECT_EQ(scale(std::int8_t{100}, std::int8_t{3}), 44);
}

}  // namespace
}  // namespace tutti
