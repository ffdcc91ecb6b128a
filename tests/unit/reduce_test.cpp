// Do all vector targets give the bits of the scalar definition, and touch nothing else?
#include "exec/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "exec/kernel.h"
#include "kernels/ops.h"

namespace tutti {
namespace {

const char* name(Target target) {
  switch (target) {
    case Target::avx512: return "AVX-512";
    case Target::avx2: return "AVX2";
    case Target::portable: break;
  }
  return "portable";
}

constexpr std::array loops = {Loop::plain, Loop::plain_pages, Loop::nontemporal, Loop::nontemporal_pages};
constexpr std::size_t count_max = 1037;      // odd, and more than any loop takes at once
constexpr std::size_t large_count = 20'001;  // several pages of every type, and what is left of them

/// Bytes with a margin on both sides that must stay as it is.
class Area {
 public:
  explicit Area(std::size_t bytes) : storage_(bytes + 2 * margin + 64, filler) {}

  /// Starts `offset` bytes after a cache line's.
  std::byte* place(std::size_t offset) {
    std::ranges::fill(storage_, filler);
    const auto start = reinterpret_cast<std::uintptr_t>(storage_.data()) + margin;
    at_ = storage_.data() + margin + (64 - start % 64) % 64 + offset % 64;
    return at_;
  }
  std::byte* at() const { return at_; }

  bool untouched_around(std::size_t bytes) const {
    const std::byte* end = storage_.data() + storage_.size();
    const auto kept = [](std::byte b) { return b == filler; };
    return std::all_of(storage_.data(), static_cast<const std::byte*>(at_), kept) &&
           std::all_of(static_cast<const std::byte*>(at_) + bytes, end, kept);
  }

 private:
  static constexpr std::byte filler{0xa5};
  static constexpr std::size_t margin = 192;
  std::vector<std::byte> storage_;
  std::byte* at_ = nullptr;
};

template <class T>
T random_value(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  T value;
  if constexpr (std::is_integral_v<T>) {
    std::memcpy(&value, &bits, sizeof value);
  } else {
    using A = Accumulate<T>;
    const A specials[] = {A(0),
                          -A(0),
                          std::numeric_limits<A>::infinity(),
                          -std::numeric_limits<A>::infinity(),
                          std::numeric_limits<A>::quiet_NaN(),
                          std::numeric_limits<A>::denorm_min(),
                          std::numeric_limits<A>::max()};
    // Mostly values of one size, so that sums round; often any bits; now and then what is special.
    if (bits % 64 == 0) return narrow<T>(specials[(bits >> 8) % std::size(specials)]);
    if (bits % 4 != 0) return narrow<T>(std::uniform_real_distribution<A>(-2, 2)(random));
    const std::uint64_t any = random();
    std::memcpy(&value, &any, sizeof value);
  }
  return value;
}

template <class T>
bool same(T a, T b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  if constexpr (std::is_integral_v<T>) return false;
  return std::isnan(static_cast<double>(widen(a))) && std::isnan(static_cast<double>(widen(b)));
}

/// A pass in the plain form the reference takes.
template <class T>
struct Operands {
  std::vector<std::vector<T>> values;  // by source
  std::vector<T> factors;
  std::vector<bool> scaled;
  std::vector<int> halvings;  // of weighted passes

  Operands(std::size_t sources, std::size_t count, ReduceOp op, std::mt19937_64& random) : values(sources) {
    for (auto& source : values) {
      source.resize(count);
      for (T& value : source) value = random_value<T>(random);
      if (op >= ReduceOp::logical_and)
        for (T& value : source) value = random() % 3 == 0 ? value : T{};
      factors.push_back(random_value<T>(random));
      scaled.push_back(op == ReduceOp::pre_mul_sum && random() % 4 != 0);
      halvings.push_back(static_cast<int>(random() % 7));
    }
  }

  /// As a weighted pass reduces them.
  std::vector<T> weighted(int divisor, int to) const {
    std::vector<T> result(values[0].size());
    if constexpr (!std::is_integral_v<T>)
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = average_scalar([&](int s) { return values[static_cast<std::size_t>(s)][i]; },
                                   [&](int s) { return weight<T>(halvings[static_cast<std::size_t>(s)]); },
                                   static_cast<int>(values.size()), divisor, to);
    return result;
  }

  template <class Op>
  std::vector<T> reduced(int divisor) const {
    std::vector<T> result(values[0].size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto load = [&](int s) {
        const auto source = static_cast<std::size_t>(s);
        return scaled[source] ? scale(values[source][i], factors[source]) : values[source][i];
      };
      result[i] = reduce_scalar<Op>(load, static_cast<int>(values.size()), divisor);
    }
    return result;
  }

  std::vector<T> reduced(ReduceOp op, int divisor) const {
    switch (op) {
// clang-format off
#define TUTTI_OPERATOR(name, Functor) case ReduceOp::name: return reduced<Functor>(divisor);
#include "kernels/ops.inc"
      // clang-format on
      default: break;
    }
    if constexpr (std::is_integral_v<T>) return bits(op);
    return {};
  }

  std::vector<T> bits(ReduceOp op) const {
    switch (op) {
      case ReduceOp::bit_and: return reduced<BitAnd>(1);
      case ReduceOp::bit_or: return reduced<BitOr>(1);
      case ReduceOp::bit_xor: return reduced<BitXor>(1);
      case ReduceOp::logical_and: return reduced<LogicalAnd>(1);
      case ReduceOp::logical_or: return reduced<LogicalOr>(1);
      case ReduceOp::logical_xor: return reduced<LogicalXor>(1);
      default: return {};
    }
  }
};

/// How one pass is laid out.
struct Layout {
  std::size_t count = 0;
  std::size_t destinations = 1;
  Loop loop = Loop::plain;
  int in_place = -1;  ///< this source is the first destination
};

template <class T>
class Bench {
 public:
  Bench(DataType type, ReduceOp op, std::size_t sources, std::size_t count, std::mt19937_64& random,
        bool weighted = false)
      : type_(type),
        op_(op),
        random_(random),
        divisor_(op == ReduceOp::avg && !(weighted && random() % 2 == 0) ? 1 + static_cast<int>(random() % 300) : 1),
        weighted_(weighted),
        halvings_(static_cast<int>(random() % 7)),
        operands_(sources, count, op, random),
        expected_(weighted ? operands_.weighted(divisor_, halvings_) : operands_.reduced(op, divisor_)),
        areas_(sources + 3, Area(count * sizeof(T))) {}

  void run(const Layout& layout) {
    for (const Target target : targets()) run_on(target, layout);
  }

 private:
  void run_on(Target target, const Layout& layout) {
    const std::size_t bytes = layout.count * sizeof(T);
    std::vector<Source> sources;
    for (std::size_t s = 0; s < operands_.values.size(); ++s) {
      Source source{areas_[s].place(offset()), operands_.scaled[s], 0};
      std::memcpy(&source.scalar, &operands_.factors[s], sizeof(T));
      if (weighted_) source.scalar = weight_bits(type_, operands_.halvings[s]);
      std::memcpy(areas_[s].at(), operands_.values[s].data(), bytes);
      sources.push_back(source);
    }
    std::vector<Area*> written;
    for (std::size_t t = 0; t < layout.destinations; ++t) {
      const bool shared = t == 0 && layout.in_place >= 0;
      written.push_back(&areas_[shared ? static_cast<std::size_t>(layout.in_place) : operands_.values.size() + t]);
      if (!shared) written.back()->place(offset());
    }
    std::vector<std::byte*> destinations;
    for (Area* area : written) destinations.push_back(area->at());

    reduce_pass_on(target, {.sources = sources,
                            .destinations = destinations,
                            .count = layout.count,
                            .type = type_,
                            .op = op_,
                            .divisor = divisor_,
                            .loop = layout.loop,
                            .weighted = weighted_,
                            .halvings = static_cast<std::uint8_t>(halvings_)});

    for (const Area* area : written) {
      std::vector<T> got(layout.count);
      if (bytes > 0) std::memcpy(got.data(), area->at(), bytes);
      const auto differs = std::mismatch(got.begin(), got.end(), expected_.begin(), same<T>).first;
      ASSERT_EQ(differs, got.end()) << "element " << differs - got.begin() << " of " << describe(target, layout);
      ASSERT_TRUE(area->untouched_around(bytes)) << describe(target, layout);
    }
  }

  /// Aligned, aligned to elements, or not at all.
  std::size_t offset() {
    const std::uint64_t pick = random_();
    return pick % 3 == 0 ? 0 : pick % 3 == 1 ? (pick >> 8) % 64 / sizeof(T) * sizeof(T) : (pick >> 8) % 64;
  }
  std::string describe(Target target, const Layout& layout) const {
    return std::string(name(target)) + ", " + std::to_string(operands_.values.size()) + " sources, " +
           std::to_string(layout.destinations) + " destinations, count " + std::to_string(layout.count) + ", " +
           std::string(name(layout.loop)) + (layout.in_place >= 0 ? ", in place" : "");
  }

  DataType type_;
  ReduceOp op_;
  std::mt19937_64& random_;
  int divisor_;
  bool weighted_;
  int halvings_;
  Operands<T> operands_;
  std::vector<T> expected_;
  std::vector<Area> areas_;
};

class EveryTypeAndOperator : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  DataType type() const { return static_cast<DataType>(std::get<0>(GetParam())); }
  ReduceOp op() const { return static_cast<ReduceOp>(std::get<1>(GetParam())); }

  template <class T>
  void check_small() {
    std::mt19937_64 random(static_cast<std::uint64_t>(100 * std::get<0>(GetParam()) + std::get<1>(GetParam())));
    for (const std::size_t sources : {1, 2, 3, 5, 8, 16}) {
      Bench<T> bench(type(), op(), sources, count_max, random);
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{63}, count_max}) {
        for (const Loop loop : loops) {
          for (const std::size_t destinations : {1, 2, 3}) {
            const int in_place = static_cast<int>(random() % (2 * sources)) - static_cast<int>(sources);
            bench.run({count, destinations, loop, std::max(in_place, -1)});
          }
        }
      }
    }
  }

  /// Passes that go through several pages at once, or ask for their destinations ahead.
  template <class T>
  void check_large() {
    std::mt19937_64 random(static_cast<std::uint64_t>(std::get<0>(GetParam())));
    for (const std::size_t sources : {2, 7}) {
      Bench<T> bench(type(), op(), sources, large_count, random);
      for (const Loop loop : loops) {
        bench.run({large_count, 2, loop, -1});
        bench.run({large_count, 3, loop, 0});
      }
    }
  }

  void check() {
    switch (type()) {
// clang-format off
#define TUTTI_INTEGER(group, name, number, bytes, Storage) case DataType::name: return check_small<Storage>(), check_large<Storage>();
#define TUTTI_FLOATING TUTTI_INTEGER
#define TUTTI_SMALL TUTTI_INTEGER
#define TUTTI_COMPLEX(group, name, number, bytes, Storage) case DataType::name: break;
#include "plan/types.inc"
      // clang-format on
    }
    FAIL() << "a type without a test";
  }
};

TEST_P(EveryTypeAndOperator, HasTheBitsOfTheDefinition) {
  check();
}

/// All that have kernels; products of complex numbers have a test of their own.
std::vector<std::tuple<int, int>> types_and_operators() {
  std::vector<std::tuple<int, int>> all;
  for (int type = 0; type < data_type_count; ++type)
    for (int op = 0; op < static_cast<int>(ReduceOp::user); ++op) {
      const auto of = static_cast<DataType>(type);
      if (group_of(of) != TypeGroup::complex && applies(static_cast<ReduceOp>(op), of)) all.emplace_back(type, op);
    }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Reduce, EveryTypeAndOperator, testing::ValuesIn(types_and_operators()), [](const auto& which) {
  return std::string(name(static_cast<DataType>(std::get<0>(which.param)))) + "_" +
         std::string(name(static_cast<ReduceOp>(std::get<1>(which.param))));
});

TEST(WeightedPasses, HaveTheBitsOfTheDefinition) {
  std::mt19937_64 random(5);
  for (const std::size_t sources : {1, 2, 3, 16})
    for (const std::size_t count : {std::size_t{1}, std::size_t{63}, count_max})
      for (int times = 0; times < 12; ++times) {
        const Layout layout{count, 1 + random() % 3, loops[random() % loops.size()], times % 3 == 0 ? 0 : -1};
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) \
  Bench<storage>(DataType::enumerator, ReduceOp::avg, sources, count, random, /*weighted=*/true).run(layout);
#define TUTTI_SMALL TUTTI_FLOATING
#include "plan/types.inc"
      }
}

/// The average of equal values is that value, whatever they are, and that of any others is what it always was.
template <class T>
void expect_averages_of_inputs(DataType type) {
  std::mt19937_64 random(6);
  for (const std::size_t sources : {2, 3, 7, 13, 16})
    for (int times = 0; times < 300; ++times) {
      std::vector<T> values(sources);
      for (T& value : values) value = random_value<T>(random);
      if (times % 3 == 0) std::ranges::fill(values, values[0]);
      Accumulate<T> sum = widen(values[0]);
      for (std::size_t i = 1; i < sources; ++i) sum += widen(values[i]);
      T expected = narrow<T>(sum / static_cast<Accumulate<T>>(sources));
      const auto finite = [](T value) { return std::isfinite(static_cast<double>(widen(value))); };
      const bool all_finite = std::ranges::all_of(values, finite);
      if (times % 3 == 0 && !finite(expected)) expected = values[0];
      for (const Target target : targets()) {
        std::vector<Source> operands;
        for (const T& value : values) operands.push_back({reinterpret_cast<const std::byte*>(&value), false, 0});
        T got;
        std::byte* const to = reinterpret_cast<std::byte*>(&got);
        reduce_pass_on(target, {.sources = operands,
                                .destinations = {&to, 1},
                                .count = 1,
                                .type = type,
                                .op = ReduceOp::avg,
                                .divisor = static_cast<int>(sources)});
        EXPECT_TRUE(!all_finite || finite(got)) << name(type);
        EXPECT_TRUE(!finite(expected) || same(got, expected)) << name(type) << " " << sources << " " << widen(got);
      }
    }
}

TEST(AveragesOfInputs, AreFiniteAndElseAsTheyWere) {
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) \
  expect_averages_of_inputs<storage>(DataType::enumerator);
#define TUTTI_SMALL TUTTI_FLOATING
#include "plan/types.inc"
}

TEST(Copy, ReachesEveryDestinationAndLeavesTheSourceAlone) {
  std::mt19937_64 random(7);
  for (const Target target : targets()) {
    for (const std::size_t bytes : {0, 1, 63, 64, 127, 4096, 4097, 20001, 70001}) {
      for (const Loop loop : loops) {
        Area source(bytes), a(bytes), b(bytes);
        std::vector<std::byte> data(bytes);
        for (std::byte& value : data) value = static_cast<std::byte>(random());
        if (bytes > 0)
          std::memcpy(source.place(random()), data.data(), bytes);
        else
          source.place(0);
        std::byte* const destinations[] = {a.place(random() % 2 * random()), source.at(), b.place(0)};
        copy_pass_on(target, source.at(), destinations, bytes, loop);
        for (const Area* area : {&a, &b, &source}) {
          EXPECT_TRUE(std::equal(data.begin(), data.end(), area->at())) << name(target) << " " << bytes;
          EXPECT_TRUE(area->untouched_around(bytes)) << name(target) << " " << bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti
