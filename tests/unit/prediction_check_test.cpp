// Which times of calls contradict their predictions: hand-made times.
#include "comm/prediction_check.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tutti {
namespace {

constexpr CallKind kind{.collective = Collective::all_reduce, .access = Access::mapped, .width = 24};
constexpr double predicted_us = 1000;

/// Of a call for each ratio of its time to the prediction.
PredictionCheck seen(std::initializer_list<double> ratios) {
  PredictionCheck check;
  std::int64_t now_ns = 5;
  for (const double ratio : ratios) {
    check.start(kind, predicted_us, now_ns);
    now_ns += static_cast<std::int64_t>(ratio * predicted_us * 1000);
    check.finish(now_ns);
  }
  return check;
}

TEST(PredictionCheck, IsContentWithTimesNearThePrediction) {
  EXPECT_FALSE(PredictionCheck().contradiction());
  EXPECT_FALSE(seen({1, 1, 1.9, 0.6, 1, 1, 1, 1, 1.5}).contradiction());
}

TEST(PredictionCheck, SaysWhenEvenTheFastestCallWasSlow) {
  const auto text = seen({3.2, 3.2, 4, 90, 3.2, 3.5, 3.1, 3.3}).contradiction();
  ASSERT_TRUE(text);
  EXPECT_EQ(
      *text,
      "8 calls of all_reduce over mapped, of 8388608 bytes and more, took at least 3.1 times as long as predicted");
  EXPECT_FALSE(seen({3, 3, 3, 3, 3, 3, 3}).contradiction()) << "seven calls";
  EXPECT_FALSE(seen({9, 9, 9, 1.2, 9, 9, 9, 9, 9, 9}).contradiction()) << "others may have had the cores";
}

TEST(PredictionCheck, SaysWhenMostCallsWereFast) {
  const auto text = seen({0.1, 0.1, 0.1, 3, 0.1, 0.1, 0.1, 0.4, 2}).contradiction();
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("9 calls of all_reduce"), std::string::npos) << *text;
  EXPECT_NE(text->find("took 0.67 of the predicted time on average"), std::string::npos) << *text;
  EXPECT_FALSE(seen({0.1, 0.1, 0.1, 0.1, 1, 1, 1, 1}).contradiction()) << "a half is not most";
}

TEST(PredictionCheck, KeepsKindsApartAndNamesTheWorst) {
  PredictionCheck check;
  const auto add = [&](int width, double ratio, int calls) {
    for (int i = 0; i < calls; ++i) {
      CallKind other = kind;
      other.width = width;
      check.start(other, predicted_us, 0);
      check.finish(static_cast<std::int64_t>(ratio * predicted_us * 1000));
    }
  };
  add(20, 5, 4);
  add(21, 5, 7);
  EXPECT_FALSE(check.contradiction()) << "no kind has enough";
  add(22, 3, 8);
  add(23, 6, 8);
  add(24, 1, 100);
  EXPECT_NE(check.contradiction()->find("of 4194304 bytes and more"), std::string::npos) << *check.contradiction();
}

TEST(PredictionCheck, CountsNoCallThatFailed) {
  PredictionCheck check = seen({3, 3, 3, 3, 3, 3, 3});
  check.start(kind, predicted_us, 0);
  EXPECT_FALSE(check.contradiction());
}

}  // namespace
}  // namespace tutti
