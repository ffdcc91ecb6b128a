// An exchange begins with a rank's own blob, has the answer, and is complete when the ranks below have it too.
#include "bootstrap/exchange_round.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

Blob blob(int value) {
  return Blob(1, static_cast<std::byte>(value));
}

TEST(ExchangeRound, OneAfterAnother) {
  ExchangeRound round;
  EXPECT_FALSE(round.under_way());
  for (std::uint32_t number = 0; number < 3; ++number) {
    const std::vector<Blob> all = {blob(static_cast<int>(number)), blob(7)};
    EXPECT_EQ(round.number(), number);
    round.begin(all[0]);
    EXPECT_EQ(*round.contribution(0), *frame(FrameKind::contribute, write_contribution(0, number, all[0])));
    EXPECT_TRUE(round.awaits_answer());
    ASSERT_TRUE(round.take_answer(write_gathered(number, all), 2, 64));
    EXPECT_TRUE(round.under_way() && round.answered() && !round.awaits_answer()) << "the ranks below may not have it";
    round.complete();
    EXPECT_FALSE(round.under_way() || round.answered());
    EXPECT_EQ(round.gathered(), all);
  }
}

TEST(ExchangeRound, AnAnswerOfAnotherExchangeIsNone) {
  ExchangeRound round;
  round.begin(blob(1));
  const std::vector<Blob> all = {blob(1), blob(2)};
  const auto taken = round.take_answer(write_gathered(1, all), 2, 64);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::remote);
  EXPECT_TRUE(round.awaits_answer());
  EXPECT_TRUE(round.gathered().empty());
}

}  // namespace
}  // namespace tutti::bootstrap
