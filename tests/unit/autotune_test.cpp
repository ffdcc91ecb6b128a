// Do all ranks of a tuning see the same turns, and the same winner, whatever each of them measured?
#include "comm/autotune.h"

#include <gtest/gtest.h>

#include <set>

namespace tutti {
namespace {

const TuningKind kind{.collective = Collective::all_reduce, .access = Access::slots, .width = 20};

std::vector<const Algorithm*> first(std::size_t candidates) {
  std::vector<const Algorithm*> all;
  for (std::size_t i = 0; i < candidates; ++i) all.push_back(&algorithms()[i]);
  return all;
}

/// A call on a rank that takes `ns`.
const Algorithm& call(Autotuner& autotuner, std::int64_t ns) {
  const Autotuner::Tuning* tuning = autotuner.find(kind);
  const Algorithm& used = Autotuner::turn(tuning == nullptr ? autotuner.enter(kind, first(5)) : *tuning);
  autotuner.start(kind, 1'000);
  autotuner.finish(1'000 + ns);
  return used;
}

void exchange(std::vector<Autotuner>& ranks) {
  std::vector<TuningTimes> lines;
  for (const Autotuner& autotuner : ranks) lines.push_back(autotuner.line());
  for (Autotuner& autotuner : ranks) {
    for (const TuningTimes& line : lines) autotuner.hear(line);
    autotuner.decide();
  }
}

TEST(Tuning, IsWonByTheShortestTimeOfTheSlowestRank) {
  std::vector<Autotuner> ranks(2, Autotuner(2));
  // By candidate and trial. The first is fast on rank 0 alone; the second had a bad first trial; the third is never
  // good.
  constexpr std::int64_t ns[2][3][2] = {{{10, 10}, {900, 50}, {80, 80}}, {{90, 95}, {60, 700}, {85, 80}}};
  for (std::size_t trial = 0; trial < 2; ++trial)
    for (std::size_t entrant = 0; entrant < 3; ++entrant) {
      exchange(ranks);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(ranks[rank].find(kind) == nullptr ? nullptr : ranks[rank].find(kind)->winner, nullptr);
        EXPECT_EQ(&call(ranks[rank], ns[rank][entrant][trial]), &algorithms()[entrant]);
      }
    }
  exchange(ranks);
  for (Autotuner& autotuner : ranks) {
    EXPECT_EQ(autotuner.find(kind)->winner, &algorithms()[1]);
    EXPECT_EQ(&call(autotuner, 5), &algorithms()[1]);
    EXPECT_NE(autotuner.story(kind).find("fastest in 6 trial calls: " + algorithms()[0].name + " 0.09 µs, " +
                                         algorithms()[1].name + " 0.06 µs, " + algorithms()[2].name + " 0.08 µs"),
              std::string::npos)
        << autotuner.story(kind);
  }
}

TEST(Tuning, SaysWhoseTurnItIs) {
  Autotuner autotuner(4);
  EXPECT_EQ(autotuner.story(kind), "");
  call(autotuner, 7);
  EXPECT_NE(autotuner.story(kind).find("12 trial calls, 1 of them made: "), std::string::npos) << autotuner.story(kind);
  EXPECT_EQ(autotuner.line().tuning, 0U) << "nothing to tell before the end";
}

TEST(Tuning, OfOneIsWon) {
  Autotuner autotuner(4);
  const auto& tuning = autotuner.enter(kind, first(1));
  EXPECT_EQ(tuning.winner, &algorithms()[0]);
  autotuner.start(kind, 1);
  autotuner.finish(2);
  EXPECT_EQ(autotuner.find(kind)->calls, 0);
  EXPECT_EQ(autotuner.story(kind), "");
}

/// Lines of calls before the end of a tuning, or of another tuning, say nothing.
TEST(Tuning, HearsOnlyOfTheRaceThatHasEnded) {
  Autotuner autotuner(1);
  autotuner.hear({.ns = {5, 5, 5}, .tuning = 1});
  autotuner.decide();
  for (const std::int64_t ns : {30, 10, 20}) call(autotuner, ns);
  EXPECT_EQ(autotuner.line().tuning, 1U);
  autotuner.hear({.ns = {900, 900, 900}, .tuning = 2});
  autotuner.hear(autotuner.line());
  autotuner.decide();
  EXPECT_EQ(autotuner.find(kind)->ns, (std::array<std::uint64_t, candidates_max>{30, 10, 20}));
  EXPECT_EQ(autotuner.find(kind)->winner, &algorithms()[1]);
}

}  // namespace
}  // namespace tutti
