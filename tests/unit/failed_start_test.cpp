// The root goes on as long as ranks may come that do not know why the start failed, and ends soon when all do.
#include "bootstrap/failed_start.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t s = 1'000'000'000;
const Error why{.code = Code::remote, .what = "a rank was lost"};

TEST(FailedStart, GoesOnUntilTheLimitForThoseWhoCome) {
  FailedStart failed;
  failed.told(0);
  failed.begin(why, /*ranks=*/2, /*limit_ns=*/20 * s, /*now_ns=*/5 * s);
  failed.end_soon_if_all_told(5 * s);
  EXPECT_EQ(failed.why()->what, why.what);
  EXPECT_FALSE(failed.over(22 * s - 1));
  EXPECT_TRUE(failed.over(22 * s)) << "the last one has time to read it";
}

TEST(FailedStart, EndsSoonWhenAllKnow) {
  FailedStart failed;
  failed.expect(3);  // one said so
  failed.begin(why, /*ranks=*/2, 20 * s, 5 * s);
  for (const int rank : {0, 1}) failed.told(rank);
  failed.end_soon_if_all_told(6 * s);
  EXPECT_FALSE(failed.over(8 * s));
  failed.told(2);
  failed.end_soon_if_all_told(6 * s);
  EXPECT_TRUE(failed.over(8 * s));
}

TEST(FailedStart, TheProcessLingersForRanksOnTheirWay) {
  FailedStart failed;
  EXPECT_FALSE(failed.lingers(0)) << "it has not failed";
  failed.begin(why, 2, 20 * s, 5 * s);
  EXPECT_TRUE(failed.lingers(8 * s - 1));
  EXPECT_FALSE(failed.lingers(8 * s));
  EXPECT_EQ(failed.wake_ns(true), 8 * s);
  EXPECT_EQ(failed.wake_ns(false), 22 * s);
  for (const int rank : {0, 1}) failed.told(rank);
  EXPECT_FALSE(failed.lingers(6 * s));
}

TEST(FailedStart, AfterTheLimitNobodyIsOnTheWay) {
  FailedStart failed;
  failed.begin({.code = Code::timeout}, 2, 5 * s, 5 * s);
  EXPECT_FALSE(failed.lingers(5 * s));
}

}  // namespace
}  // namespace tutti::bootstrap
