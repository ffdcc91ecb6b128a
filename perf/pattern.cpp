#include "perf/pattern.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace perf {
namespace {

constexpr std::size_t kTile = 4093;     // a prime: no block size is a multiple of it
constexpr std::size_t kRotation = 977;  // of each repetition relative to the previous one
constexpr int kMaxExponent = 20;        // of Data::random, as far as the type reaches

/// Calls visit(offset into the buffer, index into the tile, length) for runs that are contiguous in both.
template <class Visit>
void for_each_run(std::size_t first, std::size_t count, Visit visit) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t in_repetition = (first + done) % kTile;
    const std::size_t index = (in_repetition + kRotation * ((first + done) / kTile)) % kTile;
    const std::size_t run = std::min({count - done, kTile - in_repetition, kTile - index});
    visit(done, index, run);
    done += run;
  }
}

std::uint64_t width_mask(const Type& type) {
  return ~std::uint64_t{0} >> (64 - 8 * type.bytes);
}

/// The integer that these bits stand for, in 64 bits.
std::uint64_t extend(const Type& type, std::uint64_t bits) {
  bits &= width_mask(type);
  const bool negative = type.is_signed && (bits >> (8 * type.bytes - 1)) != 0;
  return negative ? bits | ~width_mask(type) : bits;
}

std::uint64_t integer_input(const Type& type, Op op, int ranks, std::uint64_t random) {
  if (op != Op::avg) return random & width_mask(type);
  // An average divides at the end, so its sum must not wrap.
  const auto limit = static_cast<std::uint64_t>(std::max(1, (type.is_signed ? 127 : 255) / ranks));
  return type.is_signed ? (random % (2 * limit + 1) - limit) & width_mask(type) : random % (limit + 1);
}

/// A number of few bits, so that every partial sum over the ranks is exact. If even such numbers would be too many,
/// only some ranks contribute to an element.
double summand(const Type& type, Op op, int ranks, int rank, std::uint64_t random, std::uint64_t shared) {
  const int limit = 1 << std::min(type.digits() - (op == Op::mulsum ? 1 : 0), 20);
  // Averages keep partial sums at up to an n-th of what they are, which must not be subnormal either.
  const int scale = op == Op::avg ? static_cast<int>(shared % 4) : static_cast<int>(shared % 7) - 3;
  const int turn =
      static_cast<int>((static_cast<std::uint64_t>(rank) + shared / 7) % static_cast<std::uint64_t>(ranks));
  if (turn >= limit) return 0;
  const int most = std::max(1, limit / ranks);
  const int value = static_cast<int>(random % static_cast<std::uint64_t>(2 * most + 1)) - most;
  return std::ldexp(value, scale);
}

/// A power of two, or three times one, for as many ranks as keep the product within the type.
double multiplicand(const Type& type, int ranks, int rank, std::uint64_t random, std::uint64_t shared) {
  const int threes = std::min(15, static_cast<int>(type.digits() / std::log2(3.0)));
  const int twos = std::min(8, static_cast<int>(type.exponent_max - threes * std::log2(3.0)));
  const int turn = static_cast<int>((static_cast<std::uint64_t>(rank) + shared) % static_cast<std::uint64_t>(ranks));
  double value = (random & 1) != 0 ? -1 : 1;
  if (turn < threes && (random & 2) != 0) value *= 3;
  if (turn < twos) value = std::ldexp(value, static_cast<int>(random / 4 % 3) - 1);
  return value;
}

/// A float of any sign, with an exponent for which the result over all ranks stays finite.
double wide_float(const Type& type, Op op, int ranks, std::uint64_t random) {
  int low = std::max(-kMaxExponent, type.exponent_min());
  int high =
      std::min(kMaxExponent, type.exponent_max - 2 - static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))));
  if (op == Op::prod) {
    high = std::min(kMaxExponent, type.exponent_max / ranks - 1);
    low = std::min(high, -high);
  }
  const int exponent = low + static_cast<int>(random % static_cast<std::uint64_t>(high - low + 1));
  const double fraction = static_cast<double>(random >> 12) / static_cast<double>(std::uint64_t{1} << 52);
  return std::ldexp((random & 0x800) != 0 ? -1 - fraction : 1 + fraction, exponent);
}

bool takes_any_bits(Op op) {
  return op == Op::none || op == Op::min || op == Op::max;
}

std::uint64_t float_input(const Type& type, Op op, int ranks, int rank, Data data, std::uint64_t random,
                          std::uint64_t shared) {
  if (takes_any_bits(op)) {
    const std::uint64_t bits = random & width_mask(type);
    return op == Op::none || std::isfinite(decode(type, bits)) ? bits : encode(type, 0.0);
  }
  if (data == Data::random) return encode(type, wide_float(type, op, ranks, random));
  return encode(type, op == Op::prod ? multiplicand(type, ranks, rank, random, shared)
                                     : summand(type, op, ranks, rank, random, shared));
}

std::uint64_t combine_integers(const Type& type, Op op, std::uint64_t a, std::uint64_t b) {
  const bool less = type.is_signed ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  switch (op) {
    case Op::prod: return extend(type, a * b);
    case Op::min: return less ? a : b;
    case Op::max: return less ? b : a;
    default: return extend(type, a + b);
  }
}

double combine_floats(Op op, double a, double b) {
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));  // -0 is less than +0
  switch (op) {
    case Op::prod: return a * b;
    case Op::min: return less ? a : b;
    case Op::max: return less ? b : a;
    default: return a + b;
  }
}

std::uint64_t divide_integer(const Type& type, std::uint64_t sum, int ranks) {
  if (!type.is_signed) return sum / static_cast<std::uint64_t>(ranks);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(sum) / ranks);
}

/// One division, in float32 for all types up to it, then one rounding.
double divide_float(const Type& type, double sum, int ranks) {
  if (type.id == tuttiFloat64) return sum / ranks;
  return static_cast<float>(sum) / static_cast<float>(ranks);
}

}  // namespace

Pattern::Pattern(const Type& type, Op op, int ranks, std::uint64_t seed, Data data, int combined)
    : type_(type), op_(op), ranks_(ranks), combined_(combined > 0 ? combined : ranks), seed_(seed), data_(data) {
  inputs_.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) inputs_.push_back(make_inputs(rank));
  if (op == Op::none) return;
  if (data == Data::random && type.is_float() && !takes_any_bits(op))
    reference_ = reduce_in_double();
  else
    reduced_ = reduce_exactly();
}

void Pattern::fill(void* buffer, std::size_t count, int rank, std::size_t first) const {
  const std::byte* tile = inputs_[static_cast<std::size_t>(rank)].data();
  auto* to = static_cast<std::byte*>(buffer);
  for_each_run(first, count, [&](std::size_t offset, std::size_t index, std::size_t run) {
    std::memcpy(to + offset * type_.bytes, tile + index * type_.bytes, run * type_.bytes);
  });
}

std::size_t Pattern::count_wrong(const void* got, std::size_t count, int rank, std::size_t first) const {
  const auto* bytes = static_cast<const std::byte*>(got);
  const std::size_t size = type_.bytes;
  const bool bounded = rank == kAllRanks && reference_;
  const std::byte* tile = rank == kAllRanks ? reduced_.data() : inputs_[static_cast<std::size_t>(rank)].data();
  std::size_t wrong = 0;
  for_each_run(first, count, [&](std::size_t offset, std::size_t index, std::size_t run) {
    const std::byte* at = bytes + offset * size;
    if (bounded) {
      for (std::size_t i = 0; i < run; ++i) wrong += is_close(load(type_, at + i * size), index + i) ? 0 : 1;
      return;
    }
    if (std::memcmp(at, tile + index * size, run * size) == 0) return;
    for (std::size_t i = 0; i < run; ++i)
      wrong += std::memcmp(at + i * size, tile + (index + i) * size, size) != 0 ? 1 : 0;
  });
  return wrong;
}

std::vector<std::byte> Pattern::make_inputs(int rank) const {
  std::vector<std::byte> tile(kTile * type_.bytes);
  for (std::size_t i = 0; i < kTile; ++i) {
    const std::uint64_t random = mix(seed_, static_cast<std::uint64_t>(rank) + 1, i);
    const std::uint64_t shared = mix(seed_, 0, i) >> 1;
    store(type_, tile.data() + i * type_.bytes,
          type_.is_float() ? float_input(type_, op_, ranks_, rank, data_, random, shared)
                           : integer_input(type_, op_, ranks_, random));
  }
  return tile;
}

std::vector<std::byte> Pattern::reduce_exactly() const {
  std::vector<std::byte> tile(kTile * type_.bytes);
  for (std::size_t i = 0; i < kTile; ++i) {
    const auto input = [&](int rank) {
      return load(type_, inputs_[static_cast<std::size_t>(rank)].data() + i * type_.bytes);
    };
    const auto scale = [&](int rank) { return op_ == Op::mulsum ? factor(rank) : 1.0; };
    std::uint64_t bits = 0;
    if (type_.is_float()) {
      double value = decode(type_, input(0)) * scale(0);
      for (int rank = 1; rank < combined_; ++rank)
        value = combine_floats(op_, value, decode(type_, input(rank)) * scale(rank));
      bits = encode(type_, op_ == Op::avg ? divide_float(type_, value, ranks_) : value);
    } else {
      const auto scaled = [&](int rank) {
        return extend(type_, extend(type_, input(rank)) * static_cast<std::uint64_t>(scale(rank)));
      };
      bits = scaled(0);
      for (int rank = 1; rank < combined_; ++rank) bits = combine_integers(type_, op_, bits, scaled(rank));
      if (op_ == Op::avg) bits = divide_integer(type_, bits, ranks_);
    }
    store(type_, tile.data() + i * type_.bytes, bits);
  }
  return tile;
}

Pattern::Reference Pattern::reduce_in_double() const {
  // Each rounding, in the library or here, has an error of half a unit of a partial result, which the magnitudes bound.
  const double unit = std::ldexp(1.0, -type_.digits());
  const double least = std::ldexp(1.0, type_.exponent_min() - type_.mantissa_bits);
  Reference reference;
  reference.value.resize(kTile);
  reference.tolerance.resize(kTile);
  for (std::size_t i = 0; i < kTile; ++i) {
    double value = op_ == Op::prod ? 1 : 0;
    double magnitude = value;
    for (int rank = 0; rank < combined_; ++rank) {
      const std::byte* at = inputs_[static_cast<std::size_t>(rank)].data() + i * type_.bytes;
      const double input = decode(type_, load(type_, at)) * (op_ == Op::mulsum ? factor(rank) : 1);
      value = op_ == Op::prod ? value * input : value + input;
      magnitude = op_ == Op::prod ? std::fabs(value) : magnitude + std::fabs(input);
    }
    const double divisor = op_ == Op::avg ? ranks_ : 1;
    reference.value[i] = value / divisor;
    reference.tolerance[i] = (2 * ranks_ + 2) * (unit * magnitude / divisor + least);
  }
  return reference;
}

bool Pattern::is_close(std::uint64_t bits, std::size_t tile_index) const {
  const double got = decode(type_, bits);
  return std::fabs(got - reference_->value[tile_index]) <= reference_->tolerance[tile_index];  // false for NaN
}

}  // namespace perf
