#include "perf/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace perf {
namespace {

constexpr std::array<Type, 12> kTypes{{
    {tuttiInt8, "int8", 1, true, 0, 0, false},
    {tuttiUint8, "uint8", 1, false, 0, 0, false},
    {tuttiInt32, "int32", 4, true, 0, 0, false},
    {tuttiUint32, "uint32", 4, false, 0, 0, false},
    {tuttiInt64, "int64", 8, true, 0, 0, false},
    {tuttiUint64, "uint64", 8, false, 0, 0, false},
    {tuttiFloat16, "half", 2, true, 10, 15, true},
    {tuttiFloat32, "float", 4, true, 23, 127, true},
    {tuttiFloat64, "double", 8, true, 52, 1023, true},
    {tuttiBfloat16, "bfloat16", 2, true, 7, 127, true},
    {tuttiFloat8e4m3, "f8e4m3", 1, true, 3, 8, false},
    {tuttiFloat8e5m2, "f8e5m2", 1, true, 2, 15, true},
}};

std::uint64_t sign_bit(const Type& type) {
  return std::uint64_t{1} << (8 * type.bytes - 1);
}

}  // namespace

int Type::exponent_min() const {
  return has_infinity ? 1 - exponent_max : 2 - exponent_max;
}

std::span<const Type> types() {
  return kTypes;
}

const Type& type_of(tuttiDataType_t id) {
  assert(id >= 0 && static_cast<std::size_t>(id) < kTypes.size() && kTypes[static_cast<std::size_t>(id)].id == id);
  return kTypes[static_cast<std::size_t>(id)];
}

std::uint64_t encode(const Type& type, double value) {
  assert(type.is_float() && std::isfinite(value));
  const std::uint64_t sign = std::signbit(value) ? sign_bit(type) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (type.id == tuttiFloat64) return std::bit_cast<std::uint64_t>(value);

  // In units of the last place at this exponent: below 2^mantissa_bits means subnormal, and the same bits encode it.
  const int exponent = std::max(std::ilogb(magnitude), type.exponent_min());
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - exponent)));
  const auto biased = static_cast<std::uint64_t>(exponent - type.exponent_min());
  return sign | ((biased << type.mantissa_bits) + units);
}

double decode(const Type& type, std::uint64_t bits) {
  assert(type.is_float());
  if (type.id == tuttiFloat64) return std::bit_cast<double>(bits);

  const std::uint64_t magnitude = bits & (sign_bit(type) - 1);
  const double sign = (bits & sign_bit(type)) != 0 ? -1.0 : 1.0;
  const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << type.mantissa_bits) - 1);
  const auto biased = static_cast<int>(magnitude >> type.mantissa_bits);
  if (type.has_infinity && biased == type.exponent_max - type.exponent_min() + 2)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (!type.has_infinity && magnitude == sign_bit(type) - 1) return std::numeric_limits<double>::quiet_NaN();
  if (biased == 0) return sign * std::ldexp(static_cast<double>(fraction), type.exponent_min() - type.mantissa_bits);
  const auto units = static_cast<double>(fraction + (std::uint64_t{1} << type.mantissa_bits));
  return sign * std::ldexp(units, biased - 1 + type.exponent_min() - type.mantissa_bits);
}

std::uint64_t load(const Type& type, const void* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, type.bytes);  // little endian: the low bytes
  return bits;
}

void store(const Type& type, void* at, std::uint64_t bits) {
  std::memcpy(at, &bits, type.bytes);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U + b * 0xbf58476d1ce4e5b9U + c * 0x94d049bb133111ebU + 0x2545f4914f6cdd1dU;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace perf
