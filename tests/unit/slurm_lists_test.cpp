// Slurm's short lists of nodes and tasks.
#include "launch/slurm_lists.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(SlurmLists, FindsTheFirstNode) {
  const auto first = [](std::string_view nodes) {
    auto name = slurm_first_node(nodes);
    return name ? *name : "refused: " + name.error().text();
  };
  EXPECT_EQ(first("n1"), "n1");
  EXPECT_EQ(first("n1,n2"), "n1");
  EXPECT_EQ(first("n[1-3,7],gpu[001-003]-ib"), "n1");
  EXPECT_EQ(first("gpu[001-003]-ib"), "gpu001-ib");
  EXPECT_EQ(first("rack[2-3]node[08,10]"), "rack2node08");
  EXPECT_EQ(first("login.example.org"), "login.example.org");
  for (const auto* bad : {"", ",", "n[", "n[]", "n[x]", "n[1-3", "n]1"})
    EXPECT_TRUE(first(bad).starts_with("refused")) << bad;
}

TEST(SlurmLists, CountsTasks) {
  const auto on = [](std::string_view tasks, int node) {
    auto count = slurm_tasks_on_node(tasks, node);
    return count ? *count : -1;
  };
  EXPECT_EQ(on("4", 0), 4);
  EXPECT_EQ(on("2(x3),1", 0), 2);
  EXPECT_EQ(on("2(x3),1", 2), 2);
  EXPECT_EQ(on("2(x3),1", 3), 1);
  EXPECT_EQ(on("2(x3),1", 4), -1);
  EXPECT_EQ(on("1,2(x2147483647)", 2'000'000'000), 2);
  for (const auto* bad : {"", "x", "2(", "2(x", "2(x3", "2(x3)1", "-1", "2,,1", "99999999999", "2(x99999999999)"})
    EXPECT_EQ(on(bad, 9), -1) << bad;
}

}  // namespace
}  // namespace tutti
