// Of how many ranks' inputs blocks are sums, before and after each step.
#include "plan/cells.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr Ref in{Buffer::input, 0}, out{Buffer::output, 0};

Transfer adds(Rank from, Ref src, Rank to, int inputs = 1) {
  return {.from = from, .src = src, .to = to, .dst = out, .kind = Kind::reduce, .inputs = inputs};
}

TEST(Contributions, AddUpStepByStep) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 3}, 1);
  const Cells cells(schedule, false);
  Contributions inputs(schedule, cells);
  EXPECT_EQ(inputs.at(0, in), 1);
  EXPECT_EQ(inputs.at(0, out), 0);
  inputs.step(std::vector{adds(0, in, 1), adds(1, in, 1), adds(2, in, 2)});
  EXPECT_EQ(inputs.at(1, out), 2);
  EXPECT_EQ(inputs.at(2, out), 1);
  // Both read what was there at the beginning of the step.
  const std::vector step = {adds(1, out, 2), adds(2, out, 2), adds(2, out, 1), adds(1, out, 1)};
  EXPECT_EQ(inputs.moved_by(step[0]), 2);
  inputs.step(step);
  EXPECT_EQ(inputs.at(1, out), 3);
  EXPECT_EQ(inputs.at(2, out), 3);
}

TEST(Contributions, OfOtherRanksAreAsTheTransferSays) {
  const Schedule schedule({.collective = Collective::all_reduce, .ranks = 9, .only = 2}, 1);
  const Cells cells(schedule, false);
  Contributions inputs(schedule, cells);
  inputs.step(std::vector{adds(2, in, 2), adds(5, out, 2, 4), adds(2, in, 5)});
  EXPECT_EQ(inputs.at(2, out), 5);
}

TEST(Contributions, AreNotCountedWhereNothingIsAveraged) {
  const Schedule schedule({.collective = Collective::scan, .ranks = 3}, 1);
  const Cells cells(schedule, false);
  Contributions inputs(schedule, cells);
  inputs.step(std::vector{adds(0, in, 1)});
  EXPECT_EQ(inputs.at(1, out), 0);
  EXPECT_EQ(inputs.moved_by(adds(0, in, 1)), 0);
}

}  // namespace
}  // namespace tutti
