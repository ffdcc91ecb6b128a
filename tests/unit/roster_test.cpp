// Who may come in, who is waited for, and in which words.
#include "bootstrap/roster.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t s = 1'000'000'000;

Bootstrap::Who who(int rank, int ranks = 4) {
  return {.rank = rank, .ranks = ranks, .settings_text = "", .version = 100, .process = "pid " + std::to_string(rank)};
}

Roster with(std::initializer_list<int> ranks) {
  Roster roster(64);
  for (const int rank : ranks) EXPECT_TRUE(roster.admit(who(rank), 0));
  return roster;
}

std::string refusal(Roster& roster, const Bootstrap::Who& whom) {
  const auto done = roster.admit(whom, 0);
  if (done) return "";
  EXPECT_EQ(done.error().code, Code::invalid_usage);
  return done.error().what;
}

TEST(Roster, ExchangesRoundAfterRound) {
  Roster roster = with({2, 0, 3, 1});
  EXPECT_TRUE(roster.all_here());
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (int rank = 3; rank >= 0; --rank) {
      EXPECT_FALSE(roster.round_complete());
      EXPECT_TRUE(roster.contribute(rank, {round, Blob(1, static_cast<std::byte>(rank))}, 0));
    }
    ASSERT_TRUE(roster.round_complete());
    const auto blobs = read_gathered(roster.take_gathered(), round, 4, 64);
    ASSERT_TRUE(blobs);
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ((*blobs)[rank], Blob(1, static_cast<std::byte>(rank)));
    EXPECT_FALSE(roster.waiting());
  }
}

TEST(Roster, ClaimsAreCompared) {
  Roster roster = with({0, 3});
  EXPECT_EQ(refusal(roster, who(3)), "rank 3 is claimed by two processes: pid 3 and pid 3");
  EXPECT_EQ(refusal(roster, who(1, 8)), "rank 1 (pid 1) was told of 8 ranks, rank 0 (pid 0) of 4");
  EXPECT_EQ(refusal(roster, who(4)), "pid 4 claims to be rank 4 of 4");
  EXPECT_EQ(refusal(roster, who(-1)), "pid -1 claims to be rank -1 of 4");
  auto newer = who(1);
  newer.version = 10203;
  EXPECT_EQ(refusal(roster, newer), "rank 1 (pid 1) has tutti 1.2.3, rank 0 (pid 0) has tutti 0.1.0");
  auto patched = who(1);
  patched.source = 0x12;
  EXPECT_EQ(refusal(roster, patched),
            "rank 1 (pid 1) has another build of tutti 0.1.0 than rank 0 (pid 0): their code differs "
            "(0000000000000012, 0000000000000000). All ranks must use builds of the same source");
  auto other = who(1);
  other.settings = 1;
  other.settings_text = "TUTTI_ALGO=ring";
  EXPECT_EQ(refusal(roster, other), "rank 1 has TUTTI_ALGO=ring, rank 0 has not set it");
  EXPECT_EQ(refusal(roster, who(1)), "");
}

TEST(Roster, TheFirstRankIsCheckedToo) {
  for (const auto& [rank, ranks] :
       {std::pair{0, 0}, std::pair{0, -1}, std::pair{5, 4}, std::pair{-1, 4}, std::pair{0, 1 << 30}}) {
    Roster roster(64);
    EXPECT_NE(refusal(roster, who(rank, ranks)), "");
    EXPECT_EQ(roster.ranks(), 0);
  }
}

TEST(Roster, SpeakingOutOfTurnIsRefused) {
  Roster roster = with({0, 1, 2, 3});
  EXPECT_FALSE(roster.contribute(1, {1, {}}, 0)) << "a later round";
  EXPECT_FALSE(roster.contribute(1, {0, Blob(65)}, 0)) << "too much";
  EXPECT_TRUE(roster.contribute(1, {0, {}}, 0));
  const auto twice = roster.contribute(1, {0, {}}, 0);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::remote);
  EXPECT_EQ(twice.error().peer, 1);
}

TEST(Roster, ALeaverHurtsOnlyThoseWhoWait) {
  Roster roster = with({0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(roster.contribute(rank, {0, {}}, 0));
  roster.take_gathered();
  EXPECT_TRUE(roster.leave(2, "it left", true)) << "nobody waits";
  const auto late = roster.contribute(0, {1, {}}, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().what, "rank 2 (pid 2) is gone: it left");
  EXPECT_EQ(late.error().peer, 2);

  const auto killed = roster.leave(1, "reset", false);
  ASSERT_FALSE(killed) << "nobody waits here, but maybe elsewhere";
  EXPECT_EQ(killed.error().peer, 1);

  Roster gathering = with({0, 1});
  const auto lost = gathering.leave(1, "reset", false);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::remote);
  EXPECT_EQ(lost.error().what, "rank 1 (pid 1) was lost at the start: reset");
}

TEST(Roster, MissingRanksAreNamed) {
  Roster roster = with({0, 2});
  Refusals refusals;
  refusals.add_claim(3, "10.0.0.9", "wrong id");
  EXPECT_TRUE(roster.contribute(0, {0, {}}, 0));
  const Error missing = roster.missing(refusals, 10 * s);
  EXPECT_EQ(missing.code, Code::timeout);
  EXPECT_EQ(missing.what,
            "init: 1 of 4 ranks after 10 s; missing 1 (never seen), 2 (pid 2: has joined, and is busy or stopped), 3 "
            "(10.0.0.9: wrong id)");
  EXPECT_EQ(missing.peer, -1);
}

TEST(Roster, OneMissingRankIsThePeer) {
  Roster roster = with({0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(roster.contribute(rank, {0, {}}, 0));
  roster.take_gathered();
  for (const int rank : {0, 1, 3}) EXPECT_TRUE(roster.contribute(rank, {1, {}}, 7 * s));
  const Error missing = roster.missing({}, 8 * s);
  EXPECT_EQ(missing.what,
            "init, exchange 2: 3 of 4 ranks after 1 s; missing 2 (pid 2: has joined, and is busy or stopped)");
  EXPECT_EQ(missing.peer, 2);
}

TEST(Roster, ManyMissingRanksAreCounted) {
  Roster roster(64);
  EXPECT_TRUE(roster.admit(who(0, 1000), 0));
  const std::string words = roster.missing({}, s).what;
  EXPECT_TRUE(words.ends_with("15 (never seen) and 984 more")) << words;
}

TEST(Refusals, AreCountedAndBounded) {
  Refusals refusals;
  EXPECT_EQ(refusals.words(), "");
  refusals.add("10.0.9.3");
  EXPECT_EQ(refusals.words(), "Refused so far: 1 connection without a valid greeting, the last from 10.0.9.3.");
  refusals.add("10.0.9.4");
  EXPECT_EQ(refusals.words(), "Refused so far: 2 connections without a valid greeting, the last from 10.0.9.4.");
  refusals.add_silent();
  EXPECT_EQ(refusals.count(), 2u);
  EXPECT_TRUE(refusals.words().ends_with("from 10.0.9.4. 1 connection said nothing.")) << refusals.words();
  for (int rank = 0; rank < 1000; ++rank) refusals.add_claim(rank, "x", "wrong id");
  EXPECT_EQ(refusals.words_for(63), "x: wrong id");
  refusals.add_claim(63, "y", "hung up while greeting");
  EXPECT_EQ(refusals.words_for(63), "y: hung up while greeting");
  EXPECT_EQ(refusals.words_for(64), "never seen");
}

TEST(SettingsDifference, NamesWhatDiffers) {
  const auto difference = [](std::string a, std::string b) {
    Bootstrap::Who one = who(1), two = who(2);
    one.settings_text = std::move(a);
    two.settings_text = std::move(b);
    return settings_difference(one, two);
  };
  EXPECT_EQ(difference("TUTTI_A=1", "TUTTI_A=2"), "rank 1 has TUTTI_A=1, rank 2 has TUTTI_A=2");
  EXPECT_EQ(difference("TUTTI_A=1 TUTTI_B=1", "TUTTI_B=1 TUTTI_C=3"),
            "rank 1 has TUTTI_A=1, rank 2 has not set it; rank 2 has TUTTI_C=3, rank 1 has not set it");
  EXPECT_EQ(difference("", "TUTTI_TRANSPORT=slots"),
            "rank 2 has TUTTI_TRANSPORT=slots, rank 1 has the default, TUTTI_TRANSPORT=auto");
  const std::string cut_short(1024, 'x');
  EXPECT_EQ(difference(cut_short, "TUTTI_TRANSPORT=slots"), "rank 2 has TUTTI_TRANSPORT=slots, rank 1 another value");
  EXPECT_EQ(difference("", ""), "shared settings of rank 1 and rank 2 differ");
  EXPECT_EQ(difference("= == x  y=", "TUTTI_A=1 "), difference("= == x  y=", "TUTTI_A=1 ")) << "malformed is harmless";
}

}  // namespace
}  // namespace tutti::bootstrap
