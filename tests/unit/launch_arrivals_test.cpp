// Who has come to a launch, and who waits for whom.
#include "gpu/launch_arrivals.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace tutti {
namespace {

/// Of ranks 2 and 5, both made by this thread.
struct LaunchArrivalsTest : ::testing::Test {
  LaunchArrivalsTest() {
    for (const Rank rank : arrivals.ranks()) arrivals.enter(rank);
  }
  /// Empty: it is an error.
  std::optional<bool> arrive(Rank rank, const Request& request) {
    const auto all = arrivals.arrive(rank, {.request = &request});
    if (!all) return std::nullopt;
    return *all;
  }

  LaunchArrivals arrivals{{2, 5}};
  const Request some{.count = 1}, other{.count = 2};
};

TEST_F(LaunchArrivalsTest, TheLastOneToArriveLaunchesForAll) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(arrivals.missing(2), -1);  // it does not wait
    EXPECT_EQ(arrive(2, some), false);
    EXPECT_TRUE(arrivals.waits(2));
    EXPECT_EQ(arrivals.missing(2), 5);
    EXPECT_FALSE(arrivals.waits(5));
    EXPECT_EQ(arrive(5, some), true);
    EXPECT_TRUE(arrivals.compare());
    EXPECT_EQ(arrivals.offer(1).request, &some);
    arrivals.end();
    EXPECT_FALSE(arrivals.waits(2));
    EXPECT_EQ(arrivals.offer(0).request, nullptr);
  }
}

TEST_F(LaunchArrivalsTest, WhoWithdrawsIsMissing) {
  EXPECT_EQ(arrive(2, some), false);
  arrivals.withdraw(2);
  arrivals.withdraw(2);
  EXPECT_EQ(arrive(5, some), false);
  EXPECT_EQ(arrivals.missing(5), 2);
}

TEST_F(LaunchArrivalsTest, CallsThatDifferAreFound) {
  (void)arrive(2, some);
  (void)arrive(5, other);
  const auto same = arrivals.compare();
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code, Code::invalid_usage);
  EXPECT_NE(same.error().what.find("ranks make different calls: rank 2 "), std::string::npos) << same.error().what;
}

TEST_F(LaunchArrivalsTest, HostAndDeviceMemoryDoNotMixWhoeverComesFirst) {
  EXPECT_EQ(arrive(2, some), false);
  const auto mixed = arrivals.host_call(5, /*host_staged=*/false);
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().what.find("in one call rank 5 has host memory and rank 2 device memory"), std::string::npos);
  arrivals.withdraw(2);
  EXPECT_TRUE(arrivals.host_call(5, /*host_staged=*/false));  // ahead of rank 2
  EXPECT_EQ(arrive(2, some), std::nullopt);
  EXPECT_FALSE(arrivals.waits(2));
}

TEST_F(LaunchArrivalsTest, AThreadThatDrivesAllRanksWaitsForItself) {
  EXPECT_FALSE(arrivals.waits_for_itself(2));
  (void)arrive(2, some);
  EXPECT_TRUE(arrivals.waits_for_itself(2));
  std::thread([this] { (void)arrivals.host_call(5, /*host_staged=*/true); }).join();
  EXPECT_TRUE(arrivals.waits_for_itself(2));  // on behalf of the rank
  std::thread([this] { arrivals.enter(5); }).join();
  EXPECT_FALSE(arrivals.waits_for_itself(2));
}

}  // namespace
}  // namespace tutti
