// How communicators share a GPU's blocks for kernels that wait.
#include "process/gpu_process.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

constexpr int processors = 132;  // of an H100
constexpr int most = 32;

TEST(BlockBudget, LaterCommunicatorsGetFewerBlocks) {
  const auto budget = std::make_shared<BlockBudget>();
  std::vector<std::shared_ptr<BlockBudget::Share>> shares;
  for (const int expected : {32, 32, 24, 16, 12, 8, 4, 4, 0, 0}) {
    shares.push_back(BlockBudget::take(budget, 0, most, processors));
    EXPECT_EQ(shares.back()->blocks(), expected) << shares.size();
  }
  EXPECT_EQ(BlockBudget::take(budget, 1, most, processors)->blocks(), most) << "another GPU";
  shares.erase(shares.begin());
  EXPECT_EQ(BlockBudget::take(budget, 0, most, processors)->blocks(), 12) << "a third of what was given back";
}

TEST(BlockBudget, NeverMoreThanThereAre) {
  for (int all = 0; all <= 200; ++all) {
    const auto budget = std::make_shared<BlockBudget>();
    std::vector<std::shared_ptr<BlockBudget::Share>> shares;
    int taken = 0;
    for (int i = 0; i < 40; ++i) {
      shares.push_back(BlockBudget::take(budget, 0, most, all));
      EXPECT_LE(shares.back()->blocks(), most);
      taken += shares.back()->blocks();
    }
    EXPECT_EQ(taken, all);
  }
}

TEST(BlockBudget, WhatIsNotUsedIsGivenBack) {
  const auto budget = std::make_shared<BlockBudget>();
  const auto first = BlockBudget::take(budget, 0, most, 40);  // 16
  first->shrink(4);
  first->shrink(20);
  EXPECT_EQ(first->blocks(), 4);
  EXPECT_EQ(BlockBudget::take(budget, 0, most, 40)->blocks(), 16) << "of the 36 that are left";
}

}  // namespace
}  // namespace tutti
