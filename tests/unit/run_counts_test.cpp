// Every algorithm that says it serves groups of different sizes does so: any counts, many tiles, slots and windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "algorithms/algorithm.h"
#include "call/layout.h"
#include "plan/counts.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/random.h"
#include "support/run_world.h"

namespace tutti {
namespace {

using namespace testing;

using Words = std::vector<std::int32_t>;
using CountsOf = std::vector<std::size_t>;

constexpr std::array collectives = {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
                                    Collective::gather, Collective::scatter};

/// What each rank sends each other; a quarter is nothing, some need many tiles.
std::vector<CountsOf> random_counts(const Shape& shape, Random& random) {
  const auto n = static_cast<std::size_t>(shape.ranks);
  const auto count = [&random] { return static_cast<std::size_t>(random.chance(25) ? 0 : random.below(150)); };
  std::vector<CountsOf> counts(n, CountsOf(n));
  CountsOf one(n);
  std::ranges::generate(one, count);
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) switch (shape.collective) {
        case Collective::all_gather: counts[from][to] = one[from]; break;
        case Collective::reduce_scatter: counts[from][to] = one[to]; break;
        case Collective::gather: counts[from][to] = static_cast<Rank>(to) == shape.root ? one[from] : 0; break;
        case Collective::scatter: counts[from][to] = static_cast<Rank>(from) == shape.root ? one[to] : 0; break;
        default: counts[from][to] = count();
      }
  return counts;
}

/// All ranks' buffers, groups packed, and what they must hold afterwards.
struct CountsWorld {
  std::vector<Request> requests;
  std::vector<Words> inputs, outputs, expected, scratches;
  std::vector<std::vector<PeerMemory>> peers;
  std::vector<Binding> bindings;
  std::size_t largest = 0;

  CountsWorld(const Shape& shape, const std::vector<CountsOf>& counts) {
    const int n = shape.ranks;
    for (Rank rank = 0; rank < n; ++rank) add_rank(shape, counts, rank);
    for (Rank rank = 0; rank < n; ++rank) expected.push_back(expect(shape, counts, rank));
    for (Rank rank = 0; rank < n; ++rank) bind(shape, rank);
  }

  static CountsOf column(const std::vector<CountsOf>& counts, Rank to) {
    CountsOf all;
    for (const auto& row : counts) all.push_back(row[static_cast<std::size_t>(to)]);
    return all;
  }

  void add_rank(const Shape& shape, const std::vector<CountsOf>& counts, Rank rank) {
    const auto r = static_cast<std::size_t>(rank), root = static_cast<std::size_t>(shape.root);
    CountsOf send = counts[r], recv = column(counts, rank);
    const std::size_t groups_in =
        static_cast<std::size_t>(input_groups(shape.collective, shape.ranks, rank, shape.root));
    const std::size_t groups_out =
        static_cast<std::size_t>(output_groups(shape.collective, shape.ranks, rank, shape.root));
    if (groups_in == 1 && shape.ranks > 1) send = {shape.collective == Collective::gather ? send[root] : send[r]};
    if (groups_out == 1 && shape.ranks > 1) recv = {shape.collective == Collective::scatter ? recv[root] : recv[r]};
    send.resize(groups_in);
    recv.resize(groups_out);
    Words input(std::accumulate(send.begin(), send.end(), std::size_t{0}));
    std::iota(input.begin(), input.end(), 100'000 * (rank + 1));
    inputs.push_back(std::move(input));
    outputs.emplace_back(std::accumulate(recv.begin(), recv.end(), std::size_t{0}), -1);
    for (const auto& side : {send, recv})
      for (const std::size_t count : side) largest = std::max(largest, count);
    Request request{.collective = shape.collective,
                    .input = reinterpret_cast<std::byte*>(inputs.back().data()),
                    .output = reinterpret_cast<std::byte*>(outputs.back().data()),
                    .type = DataType::int32,
                    .root = shape.root};
    const auto laid_out = lay_out(request, rank, shape.ranks, {send.data(), nullptr}, {recv.data(), nullptr});
    EXPECT_TRUE(laid_out) << laid_out.error().text();
    requests.push_back(request);
  }

  /// By the meaning of the collective alone.
  Words expect(const Shape& shape, const std::vector<CountsOf>& counts, Rank rank) const {
    const auto r = static_cast<std::size_t>(rank);
    if (output_groups(shape.collective, shape.ranks, rank, shape.root) == 0) return {};
    Words all;
    const bool one_input = shape.collective == Collective::all_gather || shape.collective == Collective::gather;
    for (std::size_t from = 0; from < counts.size(); ++from) {
      if (shape.collective == Collective::scatter && static_cast<Rank>(from) != shape.root) continue;
      const auto first = one_input ? std::size_t{0}
                                   : std::accumulate(counts[from].begin(), counts[from].begin() + rank, std::size_t{0});
      for (std::size_t i = 0; i < counts[from][r]; ++i) {
        const std::int32_t value = inputs[from][first + i];
        if (shape.collective == Collective::reduce_scatter && from > 0)
          all[i] += value;
        else
          all.push_back(value);
      }
    }
    return all;
  }

  void bind(const Shape& shape, Rank rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto& memory = peers.emplace_back(static_cast<std::size_t>(shape.ranks));
    for (Rank peer = 0; peer < shape.ranks; ++peer) {
      const Request& theirs = requests[static_cast<std::size_t>(peer)];
      const Share share = share_with(theirs, *theirs.layout, rank);
      memory[static_cast<std::size_t>(peer)] = {
          .input = const_cast<std::byte*>(theirs.input) + share.sent.begin * sizeof(std::int32_t),
          .output = theirs.output + share.received.begin * sizeof(std::int32_t)};
    }
    scratches.emplace_back(largest + 1);
    bindings.push_back({.input = requests[r].input,
                        .output = requests[r].output,
                        .scratch = reinterpret_cast<std::byte*>(scratches.back().data()),
                        .type = DataType::int32,
                        .split = Split(largest, sizeof(std::int32_t), 1),
                        .groups_differ = true,
                        .input_groups = requests[r].layout->input,
                        .output_groups = requests[r].layout->output,
                        .peers = memory,
                        .sequence = 1});
  }

  void run(const Schedule& schedule, Access access) {
    World world({.ranks = schedule.ranks(), .channels = 2, .slots = 2, .slot_bytes = 256});
    run(schedule, access, world);
  }

  void run(const Schedule& schedule, Access access, World& world) {
    std::vector<Plan> plans;
    std::vector<Run> runs;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) plans.push_back(fuse(lower(schedule, rank, access), 2));
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      if (access == Access::slots) bindings[rank].split.tile(256, plans[rank].items_max);
      runs.emplace_back(plans[rank], bindings[rank], world.links(static_cast<int>(rank)));
    }
    run_to_end(runs);
    EXPECT_EQ(outputs, expected);
  }
};

std::set<std::string> served(Access access) {
  std::set<std::string> names;
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const Collective collective : collectives)
      for (const Algorithm& algorithm : algorithms()) {
        const Shape shape{.collective = collective, .ranks = ranks, .root = ranks / 2};
        if (!serves(algorithm, shape, access)) continue;
        const Schedule schedule = algorithm.build(shape);
        if (!direct(schedule) && !(access == Access::slots && keeps_groups(schedule))) continue;
        const std::string name = fmt::format("{} {}", tutti::name(collective), algorithm.name);
        SCOPED_TRACE(fmt::format("{}, {} ranks", name, ranks));
        Random random(test_seed() + static_cast<std::uint64_t>(ranks));
        CountsWorld(shape, random_counts(shape, random)).run(schedule, access);
        if (ranks == 8) names.insert(name);
        if (::testing::Test::HasFailure()) return names;
      }
  return names;
}

TEST(Counts, AreServedThroughSlotsByThoseThatSaySo) {
  const auto names = served(Access::slots);
  for (const char* name : {"all_gather one_shot", "all_gather ring", "all_gather circulant", "reduce_scatter one_shot",
                           "reduce_scatter pairwise", "all_to_all one_shot", "all_to_all pairwise", "gather one_shot",
                           "scatter one_shot", "gather linear"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char* name : {"all_to_all bruck_all_to_all/2", "gather binomial", "reduce_scatter ring"})
    EXPECT_FALSE(names.contains(name)) << name;
}

TEST(Counts, AreServedInPlaceByThoseThatSaySo) {
  const auto names = served(Access::mapped);
  for (const Collective collective : collectives)
    EXPECT_TRUE(names.contains(fmt::format("{} one_shot", tutti::name(collective))));
  EXPECT_FALSE(names.contains("all_gather ring"));
}

/// A message of nothing is not sent: with slots for none the run still ends.
TEST(Counts, OfNothingNeedNoSlot) {
  const Shape shape{.collective = Collective::all_to_all, .ranks = 3};
  std::vector<CountsOf> counts(3, CountsOf(3));
  counts[0][1] = 100;
  CountsWorld calls(shape, counts);
  World world({.ranks = 3, .channels = 1, .slots = 2, .slot_bytes = 256});
  for (const auto& [from, to] : {std::pair(0, 2), std::pair(1, 0), std::pair(1, 2), std::pair(2, 0), std::pair(2, 1)})
    world.fifo(0, from, to).broken = Error{.code = Code::internal, .what = "used"};
  calls.run(member(algorithm::one_shot).build(shape), Access::slots, world);
}

}  // namespace
}  // namespace tutti
