// Machines in words, the order of events, bounds, and machines of tens of thousands of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/simulator/bound.h"
#include "analysis/simulator/event_queue.h"
#include "analysis/simulator/machine.h"
#include "analysis/simulator/network.h"
#include "analysis/simulator/patterns.h"
#include "analysis/simulator/quantity.h"
#include "analysis/simulator/schedule_messages.h"
#include "analysis/simulator/simulate.h"
#include "analysis/simulator/uniform.h"
#include "support/random.h"
#include "support/schedule_counts.h"

namespace tutti::simulator {
namespace {

TEST(EventQueue, HandsOutEventsInOrderOfTimeThenOfArrival) {
  testing::Random random(7);
  EventQueue<int> queue;
  std::vector<std::pair<double, int>> expected, found;
  int pushed = 0;
  const auto check = [&](std::size_t until) {
    while (!queue.empty() && found.size() < until) {
      const double time = queue.next();
      const int first = queue.top();
      found.emplace_back(time, queue.pop());
      ASSERT_EQ(found.back().second, first);
    }
  };
  // Ever later times, as of ranks that do alike, among any others, none earlier than what is out already.
  for (int round = 0; round < 5000; ++round) {
    const double now = found.empty() ? 0 : found.back().first;
    for (int i = 0; i < 3; ++i) {
      const double time = now + static_cast<double>(random.below(random.below(2) ? 3 : 1000));
      queue.push(time, pushed);
      expected.emplace_back(time, pushed++);
    }
    check(found.size() + random.below(5));
  }
  check(expected.size());
  std::ranges::sort(expected);
  EXPECT_EQ(found, expected);
}

TEST(Quantity, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*parse_bytes("4096"), 4096);
  EXPECT_EQ(*parse_bytes("64KiB"), 65536);
  EXPECT_EQ(*parse_bytes("1.5M"), 1.5 * 1024 * 1024);
  EXPECT_EQ(*parse_bytes("2GB"), 2e9);
  EXPECT_EQ(*parse_time("936ns"), 936);
  EXPECT_EQ(*parse_time("1.5us"), 1500);
  EXPECT_EQ(*parse_time("2s"), 2e9);
  EXPECT_EQ(*parse_rate("400GB/s"), 400);
  EXPECT_EQ(*parse_rate("400Gb/s"), 50);
  EXPECT_EQ(parse_bytes("12KX").error().what, "\"12KX\" is not a size like 4096, 64KiB or 1GB");
  for (const char* const word : {"", "-1", "nan", "inf", "1 KiB", "KiB", "1e999"})
    EXPECT_FALSE(parse_bytes(word)) << word;
  for (const char* const word : {"936", "1m", "ns", "-1us"}) EXPECT_FALSE(parse_time(word)) << word;
  for (const char* const word : {"1", "1GB", "0GB/s", "GB/s"}) EXPECT_FALSE(parse_rate(word)) << word;
}

TEST(Machine, IsWhatItsWordsSay) {
  const auto nodes = parse_machine("nodes:6x8,450GB/s,1us,net=50GB/s,rails=4,pod=3,taper=2,pod_latency=8us", 48);
  ASSERT_TRUE(nodes) << nodes.error().text();
  const std::vector<TreeLevel>& levels = nodes->tree->tree_levels();
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(std::tuple(levels[0].size, levels[0].bytes_per_ns, levels[0].latency_ns, levels[0].links),
            std::tuple(8, 450.0, 1000.0, 1));
  EXPECT_EQ(std::tuple(levels[1].size, levels[1].bytes_per_ns, levels[1].latency_ns, levels[1].links),
            std::tuple(3, 50.0, 5000.0, 4));
  EXPECT_EQ(std::tuple(levels[2].size, levels[2].bytes_per_ns, levels[2].latency_ns, levels[2].links),
            std::tuple(2, 50.0 * 4 * 3 / 2, 8000.0, 1));
  const auto tapered = parse_machine("fattree:4x16x32,50GB/s,1us,taper=2", 0);
  ASSERT_TRUE(tapered) << tapered.error().text();
  EXPECT_EQ(tapered->topology().ranks(), 2048);
  EXPECT_EQ(tapered->tree->tree_levels()[1].bytes_per_ns, 32 * 50.0 / 2);
  EXPECT_EQ(tapered->tree->tree_levels()[2].bytes_per_ns, 16 * 32 * 50.0 / 4);
  EXPECT_EQ(tapered->tree->tree_levels()[2].latency_ns, 3000);
  const auto torus = parse_machine("torus:4x6x2,400Gb/s,efficiency=0.5", 0);
  ASSERT_TRUE(torus) << torus.error().text();
  EXPECT_EQ(torus->topology().ranks(), 48);
  EXPECT_EQ(torus->topology().links()[0].bytes_per_ns, 25);
  const auto one = parse_machine("switch:400GB/s,936ns", 8);
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(one->text, "switch of 8, 400 GB/s, 936 ns");
}

TEST(Machine, RefusesWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> wrong[] = {
      {"ring:4", "there is no kind \"ring\""},
      {"torus", "needs sizes"},
      {"torus:", "needs sizes"},
      {"switch:100GB/s", "needs sizes"},
      {"torus:8y8", "\"8y8\" are not sizes"},
      {"torus:8x", "\"8x\" are not sizes"},
      {"torus:0x4", "\"0x4\" are not sizes"},
      {"torus:70000", "\"70000\" are not sizes"},
      {"torus:300x300", "more than 65535 ranks"},
      {"nodes:8", "has 2 sizes, not 1"},
      {"nodes:4x8,foo=1", "a nodes has no \"foo\"; it has: efficiency"},
      {"torus:4x4,rails=2", "a torus has no \"rails\""},
      {"nodes:4x8,rails=0", "rails is not a whole number"},
      {"nodes:4x8,rails=1.5", "rails is not a whole number"},
      {"nodes:4x8,pod=3", "pod=3 does not divide 4 nodes"},
      {"nodes:4x8,1us,net_latency=1ns", "a farther level has a smaller latency"},
      {"nodes:4x8,net=fast", "net: \"fast\" is not a rate"},
      {"torus:4x4,50GB/s,60GB/s", "there is one rate already"},
      {"torus:4x4,50", "\"50\" is neither a rate, a time nor name=value"},
      {"torus:4x4,efficiency=2", "efficiency is not"},
      {"fattree:4x4,taper=0", "taper is not above 0"},
  };
  for (const auto& [spec, why] : wrong) {
    const auto machine = parse_machine(spec, 0);
    ASSERT_FALSE(machine) << spec;
    EXPECT_EQ(machine.error().code, Code::invalid_argument);
    EXPECT_NE(machine.error().what.find(why), std::string::npos) << machine.error().what;
    EXPECT_NE(machine.error().what.find(spec), std::string::npos) << machine.error().what;
  }
  EXPECT_FALSE(parse_machine("torus:4x4", 15));
}

TEST(Bound, IsThatOfTheNarrowestCut) {
  const std::vector<Cut> cuts{{.groups = 32, .bytes_per_ns = 100}, {.groups = 4, .bytes_per_ns = 10}};
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::all_reduce, 32, 1000, cuts), 2 * 0.75 * 1000 / 10);
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::all_gather, 32, 1000, cuts), 0.75 * 1000 / 10);
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::all_to_all, 32, 1000, cuts), 8 * 0.75 * 1000 / 10);
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::broadcast, 32, 1000, cuts), 1000.0 / 10);
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::scan, 32, 1000, cuts), 1000.0 / 10);
  EXPECT_DOUBLE_EQ(least_time_ns(Collective::ex_scan, 32, 1000, cuts), 1000.0 / 10);
  EXPECT_EQ(least_time_ns(Collective::barrier, 32, 1000, cuts), 0);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 8), 14.0 / 8);
}

/// No algorithm is faster than the narrowest cut allows, on any machine and by any way of sharing links.
TEST(Machine, LetsNoAlgorithmBeatItsNarrowestCut) {
  int played = 0;
  for (const char* const spec : {"switch:12,10GB/s,0s", "nodes:3x4,40GB/s,0s,net=10GB/s,net_latency=0s,rails=2",
                                 "fattree:2x3x2,10GB/s,0s,taper=2", "torus:3x4,10GB/s,0s"}) {
    const auto machine = parse_machine(spec, 0);
    ASSERT_TRUE(machine) << machine.error().text();
    const double bytes = 1 << 20;
    for (const Algorithm& algorithm : algorithms())
      for (int c = 0; c < collective_count; ++c) {
        const Shape shape{
            .collective = static_cast<Collective>(c), .ranks = 12, .levels = machine->topology().levels()};
        if (!algorithm.supports(shape)) continue;
        const Schedule schedule = algorithm.build(shape);
        const double least = least_time_ns(shape.collective, 12, bytes, machine->topology().cuts());
        for (const Sharing sharing : {Sharing::fair, Sharing::fifo}) {
          const auto wire = make_wire(machine->topology(), sharing);
          const Outcome outcome = simulate(*messages_of(schedule, bytes), *wire, 0, 12);
          EXPECT_GE(outcome.time_ns, least * (1 - 1e-9)) << spec << ", " << algorithm.name << ", " << c;
          double carried = 0;
          for (const double link : wire->carried()) carried = std::max(carried, link);
          EXPECT_LE(carried, outcome.time_ns * 40 * (1 + 1e-9)) << spec << ", " << algorithm.name;
          ++played;
        }
      }
  }
  EXPECT_GT(played, 500);
}

TEST(Scale, PlaysATreeOfTensOfThousandsOfRanks) {
  constexpr int n = 24576;
  const Schedule tree = testing::built("double_tree/2", Collective::all_reduce, n);
  const Uniform network{.alpha_ns = 1000, .beta_ns_per_byte = 0, .ports = 4};
  const Outcome outcome = simulate(*messages_of(tree, 1 << 20), *make_wire(network, n), 0, n);
  EXPECT_EQ(outcome.time_ns, 2 * testing::log2_down(n) * 1000.0);
  EXPECT_GE(outcome.messages, 4u * (n - 1) * 99 / 100) << "two trees, up and down, of which few share messages";
}

TEST(Scale, PlaysCirculantsOfTensOfThousandsOfRanks) {
  constexpr int n = 24576;
  const Shape shape{.collective = Collective::all_reduce, .ranks = n};
  const double bytes = 1 << 30, alpha = 1000, beta = 0.01, gamma = 0.002;
  const Outcome outcome =
      simulate(*pattern("circulant", shape, bytes), *make_wire(Uniform{alpha, beta, 1}, n), gamma, n);
  const double share = (n - 1.0) / n, expected = 2 * testing::log2_up(n) * alpha + share * bytes * (2 * beta + gamma);
  EXPECT_NEAR(outcome.time_ns, expected, expected * 1e-9);
  EXPECT_EQ(outcome.messages, 2u * n * static_cast<unsigned>(testing::log2_up(n)));
}

}  // namespace
}  // namespace tutti::simulator
