// A failure waits for the name of the rank that caused it, and for not longer than that takes.
#include "init/split.h"

#include <gtest/gtest.h>

#include "support/sim_system.h"

namespace tutti {
namespace {

const Error missed{.code = Code::remote, .what = "the root was lost"};

TEST(UnnamedLoss, IsNamedAsSoonAsItIsSeen) {
  SimSystem system({});
  UnnamedLoss loss(system);
  EXPECT_FALSE(loss.noted());
  loss.note(missed);
  ASSERT_TRUE(loss.noted());
  EXPECT_EQ(*loss.name({}), Progress::blocked);
  EXPECT_EQ(loss.name(Error{.code = Code::remote, .what = "rank 3 was lost"}).error().what, "rank 3 was lost");
}

TEST(UnnamedLoss, StandsForItselfWhenNobodyIsNamed) {
  SimSystem system({});
  UnnamedLoss loss(system);
  loss.note(missed);
  system.poll({}, 1'900'000'000);
  EXPECT_EQ(*loss.name({}), Progress::blocked);
  system.poll({}, 200'000'000);
  EXPECT_EQ(loss.name({}).error().what, missed.what);
}

}  // namespace
}  // namespace tutti
