// Pauses between tries grow up to a limit, and only tries in a row at all addresses, for one reason, say that more
// would not help.
#include "bootstrap/bootstrap_call.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
using Why = FailedTries::Why;

TEST(FailedTries, PausesGrowUpToALimit) {
  FailedTries tries(/*rank=*/17, /*addresses=*/1);
  EXPECT_EQ(tries.next_ns(), 0) << "the first is due at once";
  EXPECT_EQ(tries.last(), "not tried yet");
  std::int64_t now = 0;
  for (const std::int64_t pause : {10, 20, 40, 80, 160, 250, 250}) {
    tries.add("refused", Why::refused, now);
    EXPECT_EQ(tries.next_ns(), now + (pause + 1) * ms) << "rank 17 comes a little after rank 16";
    now = tries.next_ns();
  }
  EXPECT_EQ(tries.count(), 7);
}

TEST(FailedTries, AllAddressesFailForOneReason) {
  FailedTries tries(0, /*addresses=*/2);
  tries.add("a", Why::refused, 5 * ms);
  EXPECT_FALSE(tries.alike(Why::refused, 0, 9 * ms)) << "the other address has not been tried";
  tries.add("b", Why::refused, 6 * ms);
  EXPECT_TRUE(tries.alike(Why::refused, 4 * ms, 9 * ms));
  EXPECT_FALSE(tries.alike(Why::refused, 5 * ms, 9 * ms)) << "not for so long";
  EXPECT_FALSE(tries.alike(Why::no_port, 0, 9 * ms));
  tries.add("c", Why::other, 10 * ms);
  EXPECT_FALSE(tries.alike(Why::refused, 0, 20 * ms)) << "not any more";
  EXPECT_EQ(tries.last(), "c");
}

}  // namespace
}  // namespace tutti::bootstrap
