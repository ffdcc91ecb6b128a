// Is an average of floats finite wherever the exact one is, by every algorithm, equal on all ranks, and no less exact
// than the sum of the inputs divided beforehand, which is how others make it?
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "exec/run.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/elements.h"
#include "support/random.h"
#include "support/run_world.h"
#include "support/shapes.h"
#include "support/share.h"

namespace tutti {
namespace {

using namespace testing;

constexpr std::size_t slot_bytes = 4096;

template <class T>
double smallest() {
  if constexpr (!is_small_float<T>)
    return std::numeric_limits<T>::denorm_min();
  else if constexpr (T::Format::exponent_bits == 8)
    return std::ldexp(1.0, -133);
  else
    return float_of(T::Format::subnormal_step);
}

/// What the elements of a call are like; each kind has equally many.
enum class Kind { largest, least, opposite, lonely, near_largest, ordinary, subnormal, small, mixed };
constexpr int kinds = 9;
constexpr std::size_t of_each = 60;
constexpr std::size_t count = kinds * of_each;

Kind kind_of(std::size_t at) {
  return static_cast<Kind>(at % kinds);
}

std::string text_of(Kind kind) {
  static const char* const names[] = {"largest",  "least",     "opposite", "lonely", "near_largest",
                                      "ordinary", "subnormal", "small",    "mixed"};
  return names[static_cast<int>(kind)];
}

template <class T>
T value(Kind kind, Rank rank, std::size_t at, Random& random) {
  const double fraction = 1 + random.below(1 << 20) * 0x1p-20;
  const double sign = random.chance(50) ? 1 : -1;
  const double most = static_cast<double>(widen(largest<T>()));
  const auto scaled = [&](int exponent) { return from_double<T>(sign * std::ldexp(fraction, exponent)); };
  switch (kind) {
    case Kind::largest: return largest<T>();
    case Kind::least: return from_double<T>(-most);
    case Kind::opposite: return from_double<T>((rank % 2 == 0 ? 1 : -1) * most);
    case Kind::lonely: return from_double<T>(rank == static_cast<Rank>(at % 2) ? most : 0);
    case Kind::near_largest: return from_double<T>(most * (1 - random.below(5) * 0x1p-4));
    case Kind::ordinary: return scaled(random.between(-2, 1));
    case Kind::subnormal:
      return from_double<T>(sign * random.below(1 << (Precision<T>::digits > 8 ? 8 : 2)) * smallest<T>());
    case Kind::small:
      return from_double<T>(sign * random.below(1 << (Precision<T>::digits > 8 ? 13 : 6)) * smallest<T>());
    case Kind::mixed: return scaled(random.between(-Precision<T>::exponent_max, Precision<T>::exponent_max));
  }
  return T{};
}

/// The buffers of all ranks, and a call on them.
template <class T>
struct Calls {
  Calls(const Schedule& schedule, const std::vector<std::vector<T>>& inputs_in, ReduceOp op) : inputs(inputs_in) {
    const Collective collective = schedule.collective();
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
      const int groups = output_groups(collective, schedule.ranks(), rank, schedule.root());
      outputs.emplace_back(count * static_cast<std::size_t>(groups));
      scratches.emplace_back(count * static_cast<std::size_t>(schedule.scratch_groups()));
    }
    for (std::size_t rank = 0; rank < outputs.size(); ++rank)
      bindings.push_back({.input = reinterpret_cast<const std::byte*>(inputs[rank].data()),
                          .output = reinterpret_cast<std::byte*>(outputs[rank].data()),
                          .scratch = reinterpret_cast<std::byte*>(scratches[rank].data()),
                          .type = type_of(),
                          .op = op,
                          .split = Split(count, sizeof(T), schedule.parts()),
                          .sequence = 1});
  }

  void run(World& world, const std::vector<Plan>& plans) {
    std::vector<PeerMemory> peers;
    for (std::size_t rank = 0; rank < outputs.size(); ++rank)
      peers.push_back(
          {reinterpret_cast<std::byte*>(inputs[rank].data()), reinterpret_cast<std::byte*>(outputs[rank].data()), {}});
    std::vector<Run> runs;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      bindings[rank].peers = peers;
      if (plans[rank].access == Access::slots) bindings[rank].split.tile(slot_bytes, plans[rank].items_max);
      runs.emplace_back(plans[rank], bindings[rank], world.links(static_cast<int>(rank)));
    }
    run_to_end(runs);
  }

  static DataType type_of() {
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) \
  if (std::is_same_v<T, storage>) return DataType::enumerator;
#define TUTTI_SMALL TUTTI_FLOATING
#include "plan/types.inc"
    return DataType::uint8;
  }

  std::vector<std::vector<T>> inputs, outputs, scratches;
  std::vector<Binding> bindings;
};

/// The elements of this rank's output of which no other rank has a copy.
std::size_t first_group(const Schedule& schedule, Rank rank) {
  return schedule.collective() == Collective::reduce_scatter ? static_cast<std::size_t>(rank) * count : 0;
}

/// In steps between the type's values of the size of the inputs' average magnitude.
struct Errors {
  double squares = 0;
  int count = 0;
  void add(double error) {
    squares += error * error;
    ++count;
  }
  void add(const Errors& other) {
    squares += other.squares;
    count += other.count;
  }
  double usual() const { return std::sqrt(squares / count); }
};

/// Of all algorithms: by type and kind of values.
struct Both {
  Errors ours, theirs;
  void add(const Errors& more_of_ours, const Errors& more_of_theirs) {
    ours.add(more_of_ours);
    theirs.add(more_of_theirs);
  }
};
using AllErrors = std::map<std::pair<std::string, Kind>, Both>;

template <class T>
double step_at(long double magnitude) {
  const double step = std::ldexp(1.0, std::ilogb(magnitude) + 1 - Precision<T>::digits);
  return std::max(step, smallest<T>());
}

template <class T>
void expect_averages(const Schedule& schedule, Access access, World& world, Random& random, AllErrors& all,
                     const std::string& type_name, const std::string& what) {
  const int n = schedule.ranks();
  std::vector<Plan> plans = lower_all(schedule, access);
  for (Plan& plan : plans) plan = fuse(std::move(plan), 2);
  std::vector<std::vector<T>> inputs, divided;
  for (Rank rank = 0; rank < n; ++rank) {
    const int groups = input_groups(schedule.collective(), n, rank, schedule.root());
    inputs.emplace_back();
    divided.emplace_back();
    for (std::size_t i = 0; i < count * static_cast<std::size_t>(groups); ++i) {
      inputs.back().push_back(value<T>(kind_of(i % count), rank, i, random));
      divided.back().push_back(
          narrow<T>(widen(inputs.back().back()) * (Accumulate<T>{1} / static_cast<Accumulate<T>>(n))));
    }
  }
  Calls<T> ours(schedule, inputs, ReduceOp::avg), theirs(schedule, divided, ReduceOp::sum);
  ours.run(world, plans);
  theirs.run(world, plans);
  if (::testing::Test::HasFatalFailure()) return;

  std::map<Kind, Errors> of_ours, of_theirs;
  for (Rank rank = 0; rank < n; ++rank) {
    const std::vector<T>& got = ours.outputs[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < got.size(); ++i) {
      long double sum = 0, magnitudes = 0;
      for (const auto& input : inputs) {
        const long double x = to_long_double(input[first_group(schedule, rank) + i]);
        sum += x;
        magnitudes += std::fabs(x);
      }
      const T other = theirs.outputs[static_cast<std::size_t>(rank)][i];
      ASSERT_TRUE(is_finite(widen(got[i]))) << what << ", element " << i << " on rank " << rank;
      const bool alike = schedule.collective() != Collective::all_reduce || same_bits(got[i], ours.outputs[0][i]);
      ASSERT_TRUE(alike) << what << ", element " << i << " on rank " << rank;
      const bool copied = schedule.collective() == Collective::all_reduce && rank > 0;
      if (copied || !is_finite(widen(other)) || magnitudes == 0) continue;
      const long double step = step_at<T>(magnitudes / n);
      of_ours[kind_of(i)].add(static_cast<double>((to_long_double(got[i]) - sum / n) / step));
      of_theirs[kind_of(i)].add(static_cast<double>((to_long_double(other) - sum / n) / step));
    }
  }
  // Each rounding has its counterpart there, so a single case differs by chance, which many of them show.
  for (auto& [kind, errors] : of_ours) {
    EXPECT_LE(errors.usual(), of_theirs[kind].usual() + std::sqrt(n) / 2) << what << ", values " << text_of(kind);
    if (kind >= Kind::ordinary) all[{type_name, kind}].add(errors, of_theirs[kind]);
  }
}

class Averages : public ::testing::TestWithParam<int> {};

/// All types up to 17 ranks, then a fifth of the cases.
TEST_P(Averages, AreFiniteAndNoLessExactThanSumsOfQuotients) {
  const int ranks = GetParam();
  Random random(test_seed() + static_cast<std::uint64_t>(ranks));
  World world({.ranks = ranks, .slot_bytes = slot_bytes});
  AllErrors all;
  int turn = 0;
  for_every_algorithm(ranks, [&](const Algorithm& algorithm, const Shape& shape) {
    if (!averages(shape.collective) || shape.root > 1 || HasFatalFailure()) return;
    const Schedule schedule = algorithm.build(shape);
    for (const Access access : {Access::slots, Access::mapped}) {
      if (access == Access::mapped && (ranks > 9 || !lowers_to(schedule, access))) continue;
      const auto expect = [&]<class T>(const char* type) {
        const int now = turn++;
        if ((ranks > 17 && now % 5 != 0) || !in_share(now)) return;
        expect_averages<T>(schedule, access, world, random, all, type,
                           text(algorithm, shape) + ", " + std::string(name(access)) + ", " + type);
      };
#define TUTTI_FLOATING(group, enumerator, number, bytes, storage) expect.operator()<storage>(#enumerator);
#define TUTTI_SMALL TUTTI_FLOATING
#include "plan/types.inc"
    }
  });
  for (const auto& [which, errors] : all)
    EXPECT_LE(errors.ours.usual(), std::max(1.1 * errors.theirs.usual(), 0.5))
        << which.first << ", values " << text_of(which.second);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Averages,
                         ::testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 23, 32, 33, 48, 64));

}  // namespace
}  // namespace tutti
