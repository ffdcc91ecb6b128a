// Do all ranks of a race see the same turns, and the same winner, whatever each of them measured?
#include "comm/race.h"

#include <gtest/gtest.h>

#include <set>

namespace tutti {
namespace {

const RaceKind kind{.collective = Collective::all_reduce, .access = Access::slots, .width = 20};

std::vector<const Algorithm*> first(std::size_t entrants) {
  std::vector<const Algorithm*> all;
  for (std::size_t i = 0; i < entrants; ++i) all.push_back(&algorithms()[i]);
  return all;
}

/// A call on a rank that takes `ns`.
const Algorithm& call(Races& races, std::int64_t ns) {
  const Races::Race* race = races.find(kind);
  const Algorithm& used = Races::turn(race == nullptr ? races.enter(kind, first(5)) : *race);
  races.start(kind, 1'000);
  races.finish(1'000 + ns);
  return used;
}

void exchange(std::vector<Races>& ranks) {
  std::vector<RaceLine> lines;
  for (const Races& races : ranks) lines.push_back(races.line());
  for (Races& races : ranks) {
    for (const RaceLine& line : lines) races.hear(line);
    races.decide();
  }
}

TEST(Race, IsWonByTheShortestTimeOfTheSlowestRank) {
  std::vector<Races> ranks(2, Races(2));
  // By entrant and trial. The first is fast on rank 0 alone; the second had a bad first trial; the third is never good.
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
  for (Races& races : ranks) {
    EXPECT_EQ(races.find(kind)->winner, &algorithms()[1]);
    EXPECT_EQ(&call(races, 5), &algorithms()[1]);
    EXPECT_NE(races.story(kind).find("winner of a race of 6 calls: " + algorithms()[0].name + " 0.09 µs, " +
                                     algorithms()[1].name + " 0.06 µs, " + algorithms()[2].name + " 0.08 µs"),
              std::string::npos)
        << races.story(kind);
  }
}

TEST(Race, SaysWhoseTurnItIs) {
  Races races(4);
  EXPECT_EQ(races.story(kind), "");
  call(races, 7);
  EXPECT_NE(races.story(kind).find("race of 12 calls, 1 of them made: "), std::string::npos) << races.story(kind);
  EXPECT_EQ(races.line().race, 0U) << "nothing to tell before the end";
}

TEST(Race, OfOneIsWon) {
  Races races(4);
  const auto& race = races.enter(kind, first(1));
  EXPECT_EQ(race.winner, &algorithms()[0]);
  races.start(kind, 1);
  races.finish(2);
  EXPECT_EQ(races.find(kind)->calls, 0);
  EXPECT_EQ(races.story(kind), "");
}

/// Lines of calls before the end of a race, or of another race, say nothing.
TEST(Race, HearsOnlyOfTheRaceThatHasEnded) {
  Races races(1);
  races.hear({.ns = {5, 5, 5}, .race = 1});
  races.decide();
  for (const std::int64_t ns : {30, 10, 20}) call(races, ns);
  EXPECT_EQ(races.line().race, 1U);
  races.hear({.ns = {900, 900, 900}, .race = 2});
  races.hear(races.line());
  races.decide();
  EXPECT_EQ(races.find(kind)->ns, (std::array<std::uint64_t, entrants_max>{30, 10, 20}));
  EXPECT_EQ(races.find(kind)->winner, &algorithms()[1]);
}

}  // namespace
}  // namespace tutti
