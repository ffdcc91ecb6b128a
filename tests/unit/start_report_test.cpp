// Who is missing is said once for each wait, how the ranks met once, and nothing to a log that does not listen.
#include "bootstrap/start_report.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t s = 1'000'000'000;

struct Lines {
  std::vector<std::string> warned, told;
  BootstrapLog log() {
    return {.warn = [this](const std::string& line) { warned.push_back(line); },
            .info = [this](const std::string& line) { told.push_back(line); }};
  }
};

TEST(StartReport, MissingRanksAreSaidOnceForEachWait) {
  Lines lines;
  StartReport report(lines.log(), /*missing_ms=*/10'000);
  EXPECT_EQ(report.missing_ns(5 * s), 15 * s);
  report.say_missing(5 * s, "rank 3 is missing");
  EXPECT_EQ(report.missing_ns(5 * s), std::nullopt);
  EXPECT_EQ(report.missing_ns(7 * s), 17 * s);
  EXPECT_EQ(lines.warned, std::vector<std::string>{"rank 3 is missing"});
  EXPECT_EQ(StartReport(lines.log(), 0).missing_ns(0), std::nullopt) << "not wanted";
  EXPECT_EQ(StartReport({}, 10'000).missing_ns(0), std::nullopt) << "nobody listens";
}

TEST(StartReport, SaysHowTheRanksMet) {
  Lines lines;
  Tree tree(2);
  for (const int rank : {0, 1}) {
    tree.arrive(rank, 2);
    tree.place(rank);
  }
  StartReport report(lines.log(), 0);
  for (const std::size_t sockets : {2, 5, 3}) report.count_sockets(sockets);
  EXPECT_FALSE(report.said_met());
  report.say_met(2, tree, Refusals{}, /*refused=*/0);
  EXPECT_TRUE(report.said_met());
  EXPECT_EQ(lines.told, std::vector<std::string>{"init: 2 ranks met in a tree of depth 1, at most 2 below each; the "
                                                 "root had at most 5 sockets"});
  EXPECT_TRUE(lines.warned.empty()) << "nothing was refused";
}

}  // namespace
}  // namespace tutti::bootstrap
