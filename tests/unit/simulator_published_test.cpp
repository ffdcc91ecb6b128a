// Published figures that simulations of machines reproduce.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/simulator/bound.h"
#include "analysis/simulator/machine.h"
#include "analysis/simulator/network.h"
#include "analysis/simulator/patterns.h"
#include "analysis/simulator/schedule_messages.h"
#include "analysis/simulator/simulate.h"
#include "analysis/simulator/uniform.h"
#include "support/nccl_latency.h"
#include "support/schedule_counts.h"

namespace tutti::simulator {
namespace {

using testing::built;

constexpr auto all_reduce = Collective::all_reduce;

Machine machine_of(const std::string& spec) {
  auto machine = parse_machine(spec, 0);
  EXPECT_TRUE(machine) << machine.error().text();
  return *std::move(machine);
}

Outcome played(const Machine& machine, MessageSource& source, Sharing sharing = Sharing::fair) {
  return simulate(source, *make_wire(machine.topology(), sharing), 0, machine.topology().ranks());
}

double played(const Machine& machine, const Schedule& schedule, double bytes) {
  return played(machine, *messages_of(schedule, bytes)).time_ns;
}

/// De Sensi et al., SC 2025: what Bine sends goes two thirds as far as what recursive halving and doubling sends, so
/// that a third less crosses the links of a line or ring.
TEST(Bine, SendsTwoThirdsAsFar) {
  constexpr int n = 1024;
  const Torus ring({n}, {.bytes_per_ns = 1});
  std::vector<int> path;
  const auto hops = [&](std::string_view algorithm) {
    const auto source = pattern(algorithm, {.collective = all_reduce, .ranks = n}, n);
    std::vector<double> by_step;
    std::vector<Message> messages;
    for (int step = 0; step < 9; ++step) {  // the tenth has half of the ring to go, either way
      source->messages_of(step, messages);
      double all = 0;
      for (const Message& m : messages) {
        ring.route(m.from, m.to, path);
        all += m.bytes * static_cast<double>(path.size());
      }
      by_step.push_back(all);
    }
    return by_step;
  };
  const std::vector<double> bine = hops("bine"), doubling = hops("halving_doubling");
  for (std::size_t step = 0; step < bine.size(); ++step) {
    const double exact = std::abs(1 - std::pow(-2, step + 1)) / 3 / std::pow(2, step);
    EXPECT_NEAR(bine[step] / doubling[step], exact, 1e-9) << step;
  }
  EXPECT_NEAR(bine.back() / doubling.back(), 2.0 / 3, 0.002);
}

/// Cho et al., MLSys 2019: inside and across nodes, each link at its own rate; flat, all goes at the rate of the
/// network.
TEST(Hierarchical, TakesTheTimesOfBothKindsOfLinks) {
  for (const int nodes : {2, 4, 8})
    for (const double net : {50.0, 100.0}) {
      const double bytes = 1 << 28, inside = 400;
      const Machine machine =
          machine_of("nodes:" + std::to_string(nodes) +
                     "x8,400GB/s,0s,rails=8,net_latency=0s,net=" + std::to_string(static_cast<int>(net)) + "GB/s");
      const Schedule schedule = built("hierarchical/8", all_reduce, 8 * nodes);
      const double expected = 2 * 7.0 / 8 * bytes / inside + 2 * (nodes - 1.0) / nodes * bytes / 8 / net;
      EXPECT_NEAR(played(machine, schedule, bytes), expected, expected * 0.001) << nodes << ", " << net;
      const double p = 8 * nodes, flat = 2 * (p - 1) / p * bytes / net;
      EXPECT_NEAR(played(machine, built("ring", all_reduce, 8 * nodes), bytes), flat, flat * 0.001) << nodes;
    }
}

/// NVIDIA/nccl#1455, bus bandwidth of large all-reduces on H100 with links of 450 GB/s: rings get 82 % of the line,
/// sums in the switch 69 % of it for (1 + 1/p) of the bytes; the better one is measured.
TEST(Nvls, HasTheBusBandwidthMeasured) {
  const double measured[] = {370, 370, 370, 420, 440, 460, 480};
  for (int p = 2; p <= 8; ++p) {
    const double bytes = 1e10;
    const std::string size = "switch:" + std::to_string(p);
    const Machine rings = machine_of(size + ",450GB/s,1us,efficiency=0.82");
    const Machine nvls = machine_of(size + ",450GB/s,1us,in_switch=310GB/s");
    const double ring = played(rings, built("ring", all_reduce, p), bytes);
    const InSwitch how{.chunks = 256, .by_owner = true, .wire_bytes = nvls.in_switch};
    const double in_switch = played(nvls, *in_switch_pattern(*nvls.tree, how, bytes)).time_ns;
    const double busbw = bytes / std::min(ring, in_switch) * bus_factor(all_reduce, p);
    EXPECT_NEAR(busbw, measured[p - 2], measured[p - 2] * 0.05) << p;
    const bool better = in_switch < ring;
    EXPECT_EQ(better, p >= 5) << p;
  }
  const Machine eight = machine_of("switch:8,450GB/s,1us,in_switch=310GB/s");
  const auto messages = in_switch_pattern(*eight.tree, {.chunks = 256, .by_owner = true, .wire_bytes = 1}, 8);
  const Outcome outcome = played(eight, *messages);
  EXPECT_NEAR(outcome.bytes, 2 * 8 * 8 * (1 + 1.0 / 8), 1e-9) << "both ways";
}

/// Graham et al., 2016: with sums in the switches a link carries the vector once, without 2 (p-1)/p times.
TEST(Sharp, SendsTheVectorOnceUpATree) {
  const double bytes = 1 << 30;
  const Machine machine = machine_of("fattree:4x4x4,25GB/s,1us,in_switch=25GB/s");
  const auto messages =
      in_switch_pattern(*machine.tree, {.chunks = 256, .by_owner = false, .wire_bytes = machine.in_switch}, bytes);
  const double time = played(machine, *messages).time_ns, host = played(machine, built("ring", all_reduce, 64), bytes);
  EXPECT_NEAR(time, bytes / 25, bytes / 25 * 0.03);
  EXPECT_NEAR(host / time, 2 * 63.0 / 64, 0.05);
}

struct NcclRow {
  testing::NcclCluster cluster;
  double ring_ll, tree_ll, ring_simple, tree_simple;
};

/// 24 GPUs: NVIDIA/nccl#1453 prints 25.214764 µs for 128 bytes, of which 25.2 are the latency.
TEST(NcclModel, HasItsLatencies) {
  EXPECT_NEAR(testing::nccl_tree_us({3, 8}, testing::nccl_ll), 25.2, 1e-9);
  const NcclRow rows[] = {
      {{1, 8}, 15.0, 15.2, 56, 64.4},           {{2, 8}, 40.0, 25.2, 131.6, 92.4},
      {{16, 8}, 311.6, 55.2, 1190, 176.4},      {{128, 8}, 2484, 85.2, 9657, 260.4},
      {{512, 8}, 9934, 105.2, 38688, 316.4},    {{3072, 8}, 59598, 125.2, 232224, 372.4},
      {{4096, 6}, 63080, 132.8, 253932, 384.4},
  };
  for (const NcclRow& row : rows) {
    const auto near = [&](double found, double expected) {
      EXPECT_NEAR(found, expected, 0.5 + expected * 1e-5) << row.cluster.ranks();
    };
    near(testing::nccl_ring_us(row.cluster, testing::nccl_ll), row.ring_ll);
    near(testing::nccl_tree_us(row.cluster, testing::nccl_ll), row.tree_ll);
    near(testing::nccl_ring_us(row.cluster, testing::nccl_simple), row.ring_simple);
    near(testing::nccl_tree_us(row.cluster, testing::nccl_simple), row.tree_simple);
  }
  for (const auto& [nodes, pat, ring] : std::vector<std::tuple<int, double, double>>{
           {8, 42.4, 106.4}, {64, 211.2, 890.4}, {512, 1477.6, 7162.4}, {4096, 11524.8, 57338.4}}) {
    EXPECT_NEAR(testing::nccl_pat_us(nodes), pat, 0.1);
    EXPECT_NEAR(testing::nccl_ring_all_gather_us(nodes), ring, 0.1);
  }
}

/// How well times lie on a straight line over x.
double r_squared(std::span<const double> x, std::span<const double> y) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i], sy += y[i], sxx += x[i] * x[i], sxy += x[i] * y[i], syy += y[i] * y[i];
  }
  const double n = static_cast<double>(x.size());
  const double covariance = n * sxy - sx * sy;
  return covariance * covariance / ((n * sxx - sx * sx) * (n * syy - sy * sy));
}

/// NCCL 2.4's announcement: the latency of trees grows with the logarithm of the ranks, that of rings with the ranks.
TEST(Latency, GrowsWithTheLogarithmOnTreesAndWithTheRanksOnRings) {
  std::vector<double> ranks, logarithms, tree, ring;
  for (int nodes = 2; nodes <= 512; nodes *= 4) {
    const Machine machine =
        machine_of("nodes:" + std::to_string(nodes) + "x8,400GB/s,1us,net=50GB/s,net_latency=2.7us,rails=8");
    const Shape shape{.collective = all_reduce, .ranks = machine.topology().ranks()};
    ranks.push_back(shape.ranks);
    logarithms.push_back(std::log2(shape.ranks));
    tree.push_back(played(machine, built("double_tree/2", all_reduce, shape.ranks), 8));
    if (nodes <= 32) ring.push_back(played(machine, *pattern("ring", shape, 8), Sharing::fifo).time_ns);
  }
  EXPECT_GT(r_squared(logarithms, tree), 0.99);
  EXPECT_GT(r_squared(std::span(ranks).first(ring.size()), ring), 0.99);
  EXPECT_GT(ring.back() / tree[ring.size() - 1], 10) << ranks[ring.size() - 1];
}

}  // namespace
}  // namespace tutti::simulator
