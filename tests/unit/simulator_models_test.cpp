// What the models of a network promise: closed forms of the uniform one, a published run of LogGOPS.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "analysis/simulator/loggops.h"
#include "analysis/simulator/schedule_messages.h"
#include "analysis/simulator/simulate.h"
#include "analysis/simulator/uniform.h"
#include "support/schedule_counts.h"

namespace tutti::simulator {
namespace {

using testing::built;
using testing::is_power_of_two;
using testing::log2_down;
using testing::log2_up;
using testing::log_up;
using testing::supported;

constexpr auto all_reduce = Collective::all_reduce;
constexpr double alpha = 1700, beta = 0.25, gamma = 0.125, bytes = 3 << 20;

Outcome played(const Schedule& schedule, const Uniform& network, double per_sum = gamma) {
  const auto messages = messages_of(schedule, bytes);
  return simulate(*messages, *make_wire(network, schedule.ranks()), per_sum, schedule.ranks());
}

/// A call of n ranks: what is expected of it, from the steps and what each rank sends and adds up.
struct Form {
  double rounds = 0;
  double sent = 0;   // in calls' bytes, over one port
  double added = 0;  // likewise
};
using FormOf = std::function<Form(int n)>;

bool always(int) {
  return true;
}
int one(int) {
  return 1;
}

struct Limits {
  bool (*ranks)(int n) = always;  ///< for which the form holds: with others, not all ranks have as much to do
  int (*ports)(int n) = one;
};

void expect_form(const std::string& name, Collective collective, const FormOf& form, const Limits& limits = {}) {
  int seen = 0;
  for (int n = 2; n <= 64; ++n) {
    if (!limits.ranks(n) || !supported(name, collective, n)) continue;
    ++seen;
    const Form f = form(n);
    const double expected = f.rounds * alpha + f.sent * bytes * beta + f.added * bytes * gamma;
    const Uniform network{.alpha_ns = alpha, .beta_ns_per_byte = beta, .ports = limits.ports(n)};
    const double time = played(built(name, collective, n), network).time_ns;
    EXPECT_NEAR(time, expected, expected * 1e-9) << name << ", " << n;
  }
  EXPECT_GT(seen, 1) << name;
}

double share(int n) {
  return (n - 1.0) / n;
}

TEST(Uniform, TakesTheClosedFormOfAllReduces) {
  expect_form("one_shot", all_reduce, [](int n) { return Form{1, n - 1.0, n - 1.0}; });
  expect_form("two_shot", all_reduce, [](int n) { return Form{2, 2 * share(n), share(n)}; });
  expect_form("ring", all_reduce, [](int n) { return Form{2.0 * (n - 1), 2 * share(n), share(n)}; });
  expect_form("circulant", all_reduce, [](int n) { return Form{2.0 * log2_up(n), 2 * share(n), share(n)}; });
  expect_form("reduce_broadcast/2", all_reduce,
              [](int n) {
                const double rounds = log2_up(n);
                return Form{2 * rounds, 2 * rounds, rounds};
              },
              {.ranks = is_power_of_two});
  for (const std::string name : {"recursive_doubling", "swing_latency"})
    expect_form(name, all_reduce, [](int n) {
      const double steps = log2_down(n), fold = is_power_of_two(n) ? 0 : 1;
      return Form{steps + 2 * fold, steps + 2 * fold, steps + fold};
    });
  for (const std::string name : {"halving_doubling", "swing", "bine"})
    expect_form(name, all_reduce, [](int n) {
      const double steps = log2_down(n), fold = is_power_of_two(n) ? 0 : 1, p = std::exp2(steps);
      return Form{2 * steps + 2 * fold, 2 * (p - 1) / p + 2 * fold, (p - 1) / p + fold};
    });
}

TEST(Uniform, SharesMessagesOfAStepBetweenPorts) {
  const Limits all{.ports = [](int n) { return n - 1; }};
  expect_form(
      "one_shot", all_reduce,
      [](int n) {
        return Form{1, 1, n - 1.0};
      },
      all);
  expect_form(
      "two_shot", all_reduce,
      [](int n) {
        return Form{2, 2.0 / n, share(n)};
      },
      all);
  expect_form("bidirectional_ring", all_reduce,
              [](int n) {
                return Form{2.0 * (n - 1), share(n), share(n)};
              },
              {.ports = [](int) { return 2; }});
  const Limits three{.ranks = [](int n) { return n == 4 || n == 16 || n == 64; }, .ports = [](int) { return 3; }};
  const auto rounds = [](int n) { return static_cast<double>(log_up(n, 4)); };
  expect_form(
      "recursive_multiplying/4", Collective::all_gather,
      [=](int n) {
        return Form{rounds(n), share(n) / 3, 0};
      },
      three);
  expect_form(
      "k_nomial/4", Collective::broadcast,
      [=](int n) {
        return Form{rounds(n), rounds(n), 0};
      },
      three);
  expect_form(
      "k_dissemination/4", Collective::barrier,
      [=](int n) {
        return Form{rounds(n), 0, 0};
      },
      three);
  for (const int n : {4, 16, 64}) {
    const double expected = rounds(n) * (alpha + bytes * beta + 3 * bytes * gamma);
    const double halved = 2 * rounds(n) * alpha + share(n) * bytes * (beta * 2 / 3 + gamma);
    EXPECT_NEAR(played(built("recursive_multiplying/4", all_reduce, n), {alpha, beta, 3}).time_ns, expected, 1e-3);
    EXPECT_NEAR(played(built("bruck/4", Collective::all_gather, n), {alpha, beta, 3}).time_ns,
                rounds(n) * alpha + share(n) / 3 * bytes * beta, 1e-3);
    EXPECT_NEAR(played(built("k_halving_doubling/4", all_reduce, n), {alpha, beta, 3}).time_ns, halved, 1e-3);
  }
  const auto spread = [](int n) { return Form{std::ceil((n - 1) / 4.0), std::ceil((n - 1) / 4.0) / n, 0}; };
  expect_form("spread_out/4", Collective::all_to_all, spread, {.ports = [](int) { return 4; }});
}

TEST(Uniform, TakesTheClosedFormOfHierarchies) {
  const Limits inside{.ports = [](int) { return 3; }};
  expect_form(
      "hierarchical/4", all_reduce,
      [](int n) {
        const int groups = n / 4;
        const double across = (1 - 1.0 / groups) / 4;
        return Form{2.0 + 2 * log2_up(groups), 2 * (1.0 / 4 + across), 3.0 / 4 + across};
      },
      inside);
}

/// Up and down a tree: the chunks follow one another as fast as the deepest rank takes them.
TEST(Uniform, TakesTheClosedFormOfPipelines) {
  for (int n = 4; n <= 64; ++n) {
    for (const int chunks : {8, 16}) {
      const Schedule tree = built("double_tree/" + std::to_string(chunks), all_reduce, n);
      const double time = played(tree, {alpha, beta, 4}, 0).time_ns, chunk = bytes / chunks * beta;
      EXPECT_GE(time, tree.steps() * (alpha + chunk) * (1 - 1e-9)) << n;
      EXPECT_LT(time, tree.steps() * (alpha + 2 * chunk)) << n << ": some pairs are neighbours in both trees";
    }
    const Schedule down = built("binary_tree/16", Collective::broadcast, n);
    EXPECT_NEAR(played(down, {alpha, beta, 2}).time_ns, down.steps() * (alpha + bytes / 16 * beta), 1e-3) << n;
  }
}

TEST(Uniform, TakesTheClosedFormOfAllGathersAndReduceScatters) {
  for (const auto collective : {Collective::all_gather, Collective::reduce_scatter}) {
    const double adds = collective == Collective::all_gather ? 0 : 1;
    const auto of = [adds](double rounds, int n) { return Form{rounds, share(n), adds * share(n)}; };
    expect_form("one_shot", collective, [&](int n) { return of(1, n); });
    expect_form("ring", collective, [&](int n) { return of(n - 1, n); });
    expect_form("circulant", collective, [&](int n) { return of(log2_up(n), n); });
    expect_form("swing", collective, [&](int n) { return of(log2_up(n), n); });
  }
  const auto gathers = [](double rounds, int n) { return Form{rounds, share(n), 0}; };
  expect_form("bruck/2", Collective::all_gather, [&](int n) { return gathers(log2_up(n), n); });
  expect_form("sparbit", Collective::all_gather, [&](int n) { return gathers(log2_up(n), n); });
  expect_form("recursive_doubling", Collective::all_gather, [&](int n) { return gathers(log2_up(n), n); });
  expect_form("neighbour_exchange", Collective::all_gather, [&](int n) { return gathers(n / 2.0, n); });
  expect_form("pairwise", Collective::reduce_scatter, [&](int n) { return Form{n - 1.0, share(n), share(n)}; });
  int seen = 0;
  for (int n = 2; n <= 64; n *= 2, ++seen)
    EXPECT_NEAR(played(built("recursive_halving", Collective::reduce_scatter, n), {alpha, beta, 1}).time_ns,
                log2_up(n) * alpha + share(n) * bytes * (beta + gamma), 1e-3);
  EXPECT_EQ(seen, 6);
}

TEST(Uniform, TakesTheClosedFormOfAllToAlls) {
  expect_form("one_shot", Collective::all_to_all, [](int n) { return Form{1, share(n), 0}; });
  expect_form("pairwise", Collective::all_to_all, [](int n) { return Form{n - 1.0, share(n), 0}; });
  expect_form("bruck_all_to_all/2", Collective::all_to_all, [](int n) {
    double blocks = 0;
    for (int distance = 1; distance < n; ++distance) blocks += std::popcount(static_cast<unsigned>(distance));
    return Form{1.0 * log2_up(n), blocks / n, 0};
  });
}

TEST(Uniform, TakesTheClosedFormOfRootedCollectives) {
  expect_form("linear", Collective::broadcast, [](int n) { return Form{n - 1.0, n - 1.0, 0}; });
  const Limits tree{.ranks = is_power_of_two};
  expect_form(
      "binomial", Collective::broadcast,
      [](int n) {
        return Form{1.0 * log2_up(n), 1.0 * log2_up(n), 0};
      },
      tree);
  expect_form("one_shot", Collective::broadcast, [](int n) { return Form{1, n - 1.0, 0}; });
  const auto scattered = [](double rounds, int n) { return Form{log2_up(n) + rounds, 2 * share(n), 0}; };
  expect_form(
      "scatter_all_gather", Collective::broadcast, [=](int n) { return scattered(log2_up(n), n); }, tree);
  expect_form(
      "scatter_ring_all_gather", Collective::broadcast, [=](int n) { return scattered(n - 1, n); }, tree);
  const auto chunked = [](double rounds) { return Form{rounds, rounds / 16, 0}; };
  expect_form("chain/16", Collective::broadcast, [&](int n) { return chunked(n - 2 + 16); });
  expect_form(
      "circulant_broadcast/16", Collective::broadcast, [&](int n) { return chunked(log2_up(n) + 16 - 1); }, tree);
  for (const auto collective : {Collective::gather, Collective::scatter})
    expect_form(
        "binomial", collective,
        [](int n) {
          return Form{1.0 * log2_up(n), share(n), 0};
        },
        tree);
  expect_form("dissemination", Collective::barrier, [](int n) { return Form{1.0 * log2_up(n), 0, 0}; });
}

/// The run that LogGOPSim's documentation shows: binomialtreereduce 8 1024.
TEST(LogGops, FinishesHostsOfABinomialReduceAsPublished) {
  const Schedule schedule = built("binomial", Collective::reduce, 8);
  const auto messages = messages_of(schedule, 1024);
  const LogGops network{.L = 2500, .o = 1500, .g = 1000, .G = 6, .O = 0, .S = 65535};
  Outcome outcome = simulate(*messages, *make_wire(network, 8), 0, 8);
  std::ranges::sort(outcome.finished_ns, std::ranges::greater());
  EXPECT_EQ(outcome.finished_ns, (std::vector<double>{34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500}));
}

TEST(LogGops, HoldsLargeMessagesUntilTheReceiverIsThere) {
  const Schedule schedule = built("binomial", Collective::broadcast, 2);
  const auto messages = messages_of(schedule, 1024);
  const LogGops network{.L = 2500, .o = 1500, .g = 1000, .G = 6, .O = 0, .S = 1023};
  const Outcome outcome = simulate(*messages, *make_wire(network, 2), 0, 2);
  EXPECT_EQ(outcome.time_ns, 2 * (1500 + 2500) + 1500 + 1023 * 6);
  EXPECT_EQ(outcome.finished_ns[0], outcome.finished_ns[1]) << "the sender has to wait for it";
}

TEST(LogGops, KeepsTheInterfaceForTheGapBetweenMessages) {
  const Schedule schedule = built("one_shot", Collective::broadcast, 5);
  const auto messages = messages_of(schedule, 1);
  const LogGops network{.L = 100, .o = 10, .g = 50, .G = 0, .O = 0};
  EXPECT_EQ(simulate(*messages, *make_wire(network, 5), 0, 5).time_ns, 3 * 50 + 10 + 100 + 10);
}

TEST(Simulate, AddsUpWhatEachStepCarries) {
  const Schedule schedule = built("ring", all_reduce, 5);
  const Outcome outcome = played(schedule, {alpha, beta, 1});
  ASSERT_EQ(outcome.steps.size(), 8u);
  for (std::size_t step = 0; step < outcome.steps.size(); ++step) {
    EXPECT_EQ(outcome.steps[step].messages, 5u);
    EXPECT_DOUBLE_EQ(outcome.steps[step].bytes, bytes);
    EXPECT_EQ(outcome.steps[step].begin_ns, step == 0 ? 0 : outcome.steps[step - 1].end_ns);
  }
  EXPECT_EQ(outcome.messages, 40u);
  EXPECT_EQ(outcome.steps.back().end_ns, outcome.time_ns);
}

}  // namespace
}  // namespace tutti::simulator
