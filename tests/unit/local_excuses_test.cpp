// A process waits for the root as long as it has reasons that the root has not heard.
#include "bootstrap/failed_start.h"

#include <gtest/gtest.h>

namespace tutti::bootstrap {
namespace {

TEST(LocalExcuses, AreWaitedForUntilTaken) {
  LocalExcuses excuses;
  EXPECT_FALSE(excuses.awaited());
  excuses.add({.rank = 3, .ranks = 4}, /*linger=*/true);
  excuses.wait_only_if(false);
  EXPECT_TRUE(excuses.awaited()) << "nobody has heard it";
  const auto said = excuses.take();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said.front().rank, 3);
  EXPECT_TRUE(excuses.take().empty());
  EXPECT_TRUE(excuses.awaited()) << "the others have not been told yet";
  excuses.wait_only_if(false);
  EXPECT_FALSE(excuses.awaited());
}

TEST(LocalExcuses, OthersMayKnowByOtherWays) {
  LocalExcuses excuses;
  excuses.add({}, /*linger=*/true);
  EXPECT_FALSE(excuses.others_know());
  excuses.add({}, /*linger=*/false);
  EXPECT_TRUE(excuses.others_know());
}

}  // namespace
}  // namespace tutti::bootstrap
