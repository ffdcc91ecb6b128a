"""float8_e4m3fnuz: one NaN, no infinity, no negative zero; largest value 240."""
NAME = "float8_e4m3fnuz"
TARGETS = ["ops_test", "reduce_test", "average_test", "mismatch_test", "api_arguments_test", "api_operators_test", "tutti"]
COMMANDS = [
    "build/tests/ops_test",
    "build/tests/reduce_test",  # every type: vector code gives the bits of the scalar one
    "build/tests/average_test",
    "build/tests/mismatch_test",
    "build/tests/api_arguments_test",
    "build/tests/api_operators_test",
    "PYTHONPATH=python LD_LIBRARY_PATH=build/src python3 -c 'import tutti; assert tutti.DataType.FLOAT8_E4M3FNUZ == 68'",
]

FORMAT = """/// Without infinity and negative zero, whose code is the only NaN.
struct FormatE4m3Fnuz {
  static constexpr int exponent_bits = 4, mantissa_bits = 3, bias = 8, shift = 20;
  static constexpr bool finite = true, unsigned_zero = true;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t magnitude = 0x7f, exponent_mask = 0x78, nan = 0x80, overflow = 0x80;
  static constexpr std::uint32_t largest = (0x7fu << shift) + rebias;
  static constexpr std::uint32_t normal_min = static_cast<std::uint32_t>(128 - bias) << 23;
  static constexpr std::uint32_t subnormal_step = static_cast<std::uint32_t>(128 - bias - mantissa_bits) << 23;
  static constexpr std::uint32_t subnormal_magic = static_cast<std::uint32_t>(128 - bias - mantissa_bits + 23) << 23;
};
template <class Format>
inline constexpr bool unsigned_zero = requires { Format::unsigned_zero; };
"""

TEST = """
TEST(Float8E4m3fnuz, HasTheValuesOfItsFormat) {
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code & 0x7f) >> 3, mantissa = code & 7;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8 + mantissa, exponent - 11);
    const float wide = widen(Float8E4m3fnuz{static_cast<std::uint8_t>(code)});
    if (code == 0x80) {
      EXPECT_TRUE(std::isnan(wide));
    } else {
      EXPECT_EQ(wide, code < 0x80 ? magnitude : -magnitude) << code;
      EXPECT_EQ(narrow<Float8E4m3fnuz>(wide).bits, code);
    }
  }
  for (const float value : {-0.0f, 1e-9f, -1e-9f}) EXPECT_EQ(narrow<Float8E4m3fnuz>(value).bits, 0) << value;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {248.1f, -248.1f, infinity, -infinity, std::nanf("")})
    EXPECT_EQ(narrow<Float8E4m3fnuz>(value).bits, 0x80) << value;
  EXPECT_EQ(narrow<Float8E4m3fnuz>(247.9f).bits, 0x7f);
}
"""


def make(tree):
    tree.change("src/plan/types.inc", "complex64, 66", "TUTTI_ROW(host, small, float8_e4m3fnuz, 68, 1, ::tutti::Float8E4m3fnuz)\n{}")
    tree.change("include/tutti/types.h", "tuttiComplex128 = 67", "{}\n  tuttiFloat8e4m3fnuz = 68,")
    tree.change("include/tutti/types.h", "tuttiNumTypes = 68", "  tuttiNumTypes = 69    /* above all of them */")
    tree.change("kernels/ops.h", "template <class FormatOf, class Bits>", FORMAT + "\n{}")
    tree.change("kernels/ops.h", "using Float8E5m2 =", "{}\nusing Float8E4m3fnuz = SmallFloat<FormatE4m3Fnuz, std::uint8_t>;")
    tree.change("kernels/ops.h", "    const std::uint32_t magnitude = value.bits & F::magnitude;",
                "    if constexpr (unsigned_zero<F>)\n      if (value.bits == F::nan) return float_of(0x7fc00000u);\n{}")
    tree.change("kernels/ops.h", "    using Bits = decltype(T::bits);",
                "{}\n    if constexpr (unsigned_zero<F>)\n      if (bits == 0) return T{0};")
    tree.change("src/exec/codec-inl.h", "const auto special = less(",
                "{}\n      if constexpr (unsigned_zero<F>) bits = hn::IfThenElse(hn::Eq(code, u32(F::nan)), u32(0x7fc00000u), bits);")
    tree.change("src/exec/codec-inl.h", "return hn::DemoteTo(Packed(), hn::BitCast(DI(), hn::Or(bits, sign)));",
                "      if constexpr (unsigned_zero<F>) return hn::DemoteTo(Packed(), hn::BitCast(DI(), hn::IfThenElseZero("
                "hn::Ne(bits, u32(0)), hn::Or(bits, sign))));\n{}")
    tree.change("python/tutti/_types.py", "    COMPLEX128 = 67", "{}\n    FLOAT8_E4M3FNUZ = 68")
    tree.change("tests/unit/ops_test.cpp", "TEST(Operators, IntegersWrap) {", TEST.lstrip("\n") + "\n{}")
