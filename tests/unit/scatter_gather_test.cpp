// The lists of a scatter-gather are taken for the collective they amount to, and for no other.
#include "call/scatter_gather.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr int ranks = 3;
const std::vector<int> everyone = {0, 1, 2}, reversed = {2, 1, 0}, two = {2};

/// "all_gather 4 root 0", or "" where none fits.
std::string amounts(const std::vector<int>& from, const std::vector<int>& to, std::size_t unit, std::size_t total) {
  const auto known = amounts_to({.sources = from, .destinations = to, .unit = unit, .total = total}, ranks);
  if (!known) return "";
  return std::string(name(known->collective)) + " " + std::to_string(known->count) + " root " +
         std::to_string(known->root);
}

TEST(ScatterGather, IsTheCollectiveItAmountsTo) {
  EXPECT_EQ(amounts(everyone, everyone, 4, 4), "all_gather 4 root 0");
  EXPECT_EQ(amounts(everyone, everyone, 4, 12), "all_to_all 4 root 0");
  EXPECT_EQ(amounts(two, everyone, 4, 4), "broadcast 4 root 2");
  EXPECT_EQ(amounts(two, everyone, 4, 12), "scatter 4 root 2");
  EXPECT_EQ(amounts(everyone, two, 4, 4), "gather 4 root 2");
  EXPECT_EQ(amounts(everyone, two, 4, 8), "gather 4 root 2");
}

TEST(ScatterGather, IsItselfOtherwise) {
  EXPECT_EQ(amounts(reversed, everyone, 4, 4), "");
  EXPECT_EQ(amounts(everyone, reversed, 4, 12), "");
  EXPECT_EQ(amounts(everyone, everyone, 4, 8), "") << "the third gets what the first gets";
  EXPECT_EQ(amounts(two, two, 4, 4), "");
  EXPECT_EQ(amounts(two, reversed, 4, 12), "");
}

TEST(ScatterGather, BeginsAgainWhereAVectorEnds) {
  const ScatterGather call{.sources = two, .destinations = reversed, .unit = 4, .total = 8};
  const Exchanged sent = exchanged(call, 2, ranks);
  EXPECT_EQ(sent.send_counts, (std::vector<std::size_t>{4, 4, 4}));
  EXPECT_EQ(sent.send_at, (std::vector<std::size_t>{0, 4, 0})) << "ranks 2, 1 and 0 are destinations 0, 1 and 2";
  EXPECT_EQ(sent.recv_counts, (std::vector<std::size_t>{0, 0, 4}));
  const Exchanged idle = exchanged({.sources = two, .destinations = two, .unit = 4, .total = 4}, 0, ranks);
  EXPECT_EQ(idle.send_counts, std::vector<std::size_t>(3));
  EXPECT_EQ(idle.recv_counts, std::vector<std::size_t>(3));
}

TEST(ScatterGather, OtherListsHaveOtherFingerprints) {
  const auto print = [](const std::vector<int>& from, const std::vector<int>& to, std::size_t total) {
    return fingerprint({.sources = from, .destinations = to, .unit = 1, .total = total});
  };
  const auto first = print(everyone, two, 4);
  EXPECT_NE(first, print(reversed, two, 4));
  EXPECT_NE(first, print(two, everyone, 4));
  EXPECT_NE(first, print(everyone, two, 8));
  EXPECT_EQ(first, print(everyone, two, 4));
}

}  // namespace
}  // namespace tutti
