// Operands of a step's reductions are counted by destination, of all ranks or of one.
#include "plan/operand_counts.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr Ref output{Buffer::output, 5}, scratch{Buffer::scratch, 5};

TEST(OperandCounts, AreKeptByRankBufferAndBlockUntilCleared) {
  OperandCounts all(false);
  EXPECT_EQ(all.add(1, output), 1);
  EXPECT_EQ(all.add(1, output), 2);
  EXPECT_EQ(all.add(2, output), 1);
  EXPECT_EQ(all.add(1, scratch), 1);
  EXPECT_EQ(all.add(1, {Buffer::output, 6}), 1);
  all.clear();
  EXPECT_EQ(all.add(1, output), 1);
}

TEST(OperandCounts, OfOneRankAreTheSame) {
  OperandCounts own(true);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(own.add(7, output), 1);
    EXPECT_EQ(own.add(7, {Buffer::output, 500}), 1);
    EXPECT_EQ(own.add(7, output), 2);
    EXPECT_EQ(own.add(7, scratch), 1);
    own.clear();
  }
}

TEST(BlockTable, KeepsWhatItHoldsWhileItGrows) {
  BlockTable<int> table;
  table.at(output) = 3;
  EXPECT_EQ(table.at({Buffer::output, 1000}), 0);
  EXPECT_EQ(table.at(output), 3);
  EXPECT_TRUE(table.of(Buffer::scratch).empty());
}

}  // namespace
}  // namespace tutti
