// Networks of links: ways, fair shares, queues, and the figures of papers that they reproduce.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/simulator/network.h"
#include "analysis/simulator/patterns.h"
#include "analysis/simulator/schedule_messages.h"
#include "analysis/simulator/simulate.h"
#include "support/schedule_counts.h"

namespace tutti::simulator {
namespace {

double played(const Topology& topology, MessageSource& source, Sharing sharing = Sharing::fair) {
  return simulate(source, *make_wire(topology, sharing), 0, topology.ranks()).time_ns;
}

/// Messages given one by one.
class Given : public MessageSource {
 public:
  Given(int endpoints, std::vector<Message> messages) : endpoints_(endpoints), messages_(std::move(messages)) {}
  int endpoints() const override { return endpoints_; }
  int steps() const override { return 1; }
  void messages_of(int, std::vector<Message>& messages) override { messages = messages_; }

 private:
  int endpoints_;
  std::vector<Message> messages_;
};

std::vector<double> received(const Topology& topology, const std::vector<Message>& messages, Sharing sharing) {
  const auto wire = make_wire(topology, sharing);
  for (const Message& m : messages) wire->send(m, 0);
  std::vector<double> times(messages.size());
  std::vector<Delivery> deliveries;
  while (wire->advance(deliveries)) {
  }
  for (const Delivery& d : deliveries) times[static_cast<std::size_t>(d.message - messages.data())] = d.received;
  return times;
}

TEST(Tree, LeadsUpAndDownAgain) {
  // Two pods of two nodes with two ranks; two links out of each node.
  const Tree tree({{.size = 2, .bytes_per_ns = 100, .latency_ns = 1},
                   {.size = 2, .bytes_per_ns = 10, .latency_ns = 5, .links = 2},
                   {.size = 2, .bytes_per_ns = 20, .latency_ns = 11}});
  ASSERT_EQ(tree.ranks(), 8);
  std::vector<int> path;
  const auto names = [&](Rank from, Rank to) {
    tree.route(from, to, path);
    std::string all;
    for (const int link : path) all += "[" + tree.link_name(link) + "]";
    return all;
  };
  EXPECT_EQ(names(0, 1), "[rank 0, up][rank 1, down]");
  EXPECT_EQ(names(1, 2), "[rank 1, up][ranks 0-1, link 1, up][ranks 2-3, link 0, down][rank 2, down]");
  EXPECT_EQ(names(3, 7),
            "[rank 3, up][ranks 2-3, link 1, up][ranks 0-3, up][ranks 4-7, down]"
            "[ranks 6-7, link 1, down][rank 7, down]");
  EXPECT_EQ(names(5, tree.switch_above(0, 4)), "[rank 5, up]");
  EXPECT_EQ(names(tree.switch_above(2, 0), 6), "[ranks 4-7, down][ranks 6-7, link 0, down][rank 6, down]");
  for (const auto& [to, latency] : std::vector<std::pair<Rank, double>>{{1, 1}, {3, 5}, {5, 11}}) {
    tree.route(0, to, path);
    double sum = 0;
    for (const int link : path) sum += tree.links()[static_cast<std::size_t>(link)].latency_ns;
    EXPECT_DOUBLE_EQ(sum, latency);
  }
  ASSERT_EQ(tree.levels().size(), 2u);
  EXPECT_EQ(tree.levels()[0], (Level{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(tree.levels()[1], (Level{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(Torus, TakesTheFewestHops) {
  const Torus torus({4, 5, 2}, {.bytes_per_ns = 1, .latency_ns = 1});
  ASSERT_EQ(torus.ranks(), 40);
  std::vector<int> path;
  for (Rank from = 0; from < 40; ++from)
    for (Rank to = 0; to < 40; ++to) {
      const auto around = [](int a, int b, int size) { return std::min((a - b + size) % size, (b - a + size) % size); };
      torus.route(from, to, path);
      EXPECT_EQ(static_cast<int>(path.size()),
                around(from / 10, to / 10, 4) + around(from / 2 % 5, to / 2 % 5, 5) + around(from % 2, to % 2, 2));
    }
}

TEST(Fair, SharesWhatTheNarrowestLinksLeave) {
  const Tree tree({{.size = 4, .bytes_per_ns = 6}});
  // 0 sends to three, so each gets a third; 3's other message gets what is left of the link to 1.
  const std::vector<Message> messages{{.from = 0, .to = 1, .bytes = 20},
                                      {.from = 0, .to = 2, .bytes = 20},
                                      {.from = 0, .to = 3, .bytes = 20},
                                      {.from = 3, .to = 1, .bytes = 20}};
  const std::vector<double> times = received(tree, messages, Sharing::fair);
  EXPECT_NEAR(times[3], 20 / 4.0, 1e-9);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(times[static_cast<std::size_t>(i)], 20 / 2.0, 1e-9);
}

TEST(Fair, GivesWhatIsFreedToThoseWhoStay) {
  const Tree tree({{.size = 2, .bytes_per_ns = 10, .latency_ns = 3}});
  const std::vector<Message> messages{{.from = 0, .to = 1, .bytes = 10}, {.from = 0, .to = 1, .bytes = 30}};
  const std::vector<double> times = received(tree, messages, Sharing::fair);
  EXPECT_NEAR(times[0], 2 + 3, 1e-9);
  EXPECT_NEAR(times[1], 4 + 3, 1e-9);
}

TEST(Fifo, ServesOneMessageAfterTheOther) {
  const Tree tree({{.size = 2, .bytes_per_ns = 10, .latency_ns = 3}});
  const std::vector<Message> messages{{.from = 0, .to = 1, .bytes = 10}, {.from = 0, .to = 1, .bytes = 30}};
  const std::vector<double> times = received(tree, messages, Sharing::fifo);
  EXPECT_NEAR(times[0], 1 + 3, 1e-9);
  EXPECT_NEAR(times[1], 4 + 3, 1e-9);
}

TEST(Networks, AgreeOnAMessageAlone) {
  const Tree tree({{.size = 2, .bytes_per_ns = 10, .latency_ns = 3}, {.size = 2, .bytes_per_ns = 4, .latency_ns = 8}});
  for (const auto sharing : {Sharing::fair, Sharing::fifo}) {
    EXPECT_NEAR(received(tree, {{.from = 0, .to = 3, .bytes = 100}}, sharing)[0], 100 / 4.0 + 8, 1e-9);
    EXPECT_NEAR(received(tree, {{.from = 0, .to = 3, .bytes = 0}}, sharing)[0], 8, 1e-9);
  }
}

/// Time of an all-reduce on a torus, against what the links of a rank need to carry 2 (p-1)/p of the vector.
double congestion(const std::vector<int>& sizes, bool swing) {
  const Torus torus(sizes, {.bytes_per_ns = 1});
  const double bytes = 1 << 30, p = torus.ranks();
  const double best = 2 * (p - 1) / p * bytes / torus.cuts()[0].bytes_per_ns;
  return played(torus, *torus_pattern(torus, swing, bytes)) / best;
}

struct TorusFigure {
  std::vector<int> sizes;
  double swing;
  double doubling;
};

void expect_figures(const std::vector<TorusFigure>& figures) {
  for (const TorusFigure& f : figures) {
    EXPECT_NEAR(congestion(f.sizes, true), f.swing, f.swing * 0.01) << f.sizes.size() << "d, " << f.sizes[0];
    EXPECT_NEAR(congestion(f.sizes, false), f.doubling, f.doubling * 0.01) << f.sizes.size() << "d, " << f.sizes[0];
  }
}

TEST(Swing, HasTheCongestionOfItsPaper) {
  expect_figures({{{8, 8}, 1.095, 2.67}, {{16, 16}, 1.141, 2.82}, {{8, 8, 8}, 1.027, 2.30}});
}

TEST(SwingNightly, HasTheCongestionOfItsPaperOnLargeTori) {
  expect_figures({{{64, 64}, 1.185, 2.95}, {{16, 16, 16}, 1.034, 2.33}, {{8, 8, 8, 8}, 1.007, 2.14}});
}

}  // namespace
}  // namespace tutti::simulator
