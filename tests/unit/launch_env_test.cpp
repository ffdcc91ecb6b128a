#include "comm/launch_env.h"

#include <gtest/gtest.h>

#include <map>

namespace tutti {
namespace {

Result<LaunchInfo> read(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(LaunchEnv, UnderstandsTorchrun) {
  auto launch = read({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(launch) << launch.error().text();
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->ranks, 8);
  EXPECT_EQ(launch->launcher, "torchrun");
  EXPECT_EQ(launch->root, (SocketAddress{.host = "10.0.0.1", .port = 29501}));
}

TEST(LaunchEnv, UnderstandsOpenMpi) {
  auto launch = read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "123@1"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "Open MPI");
  EXPECT_FALSE(launch->root);
  EXPECT_NE(launch->job.find("123@1"), std::string::npos);
}

TEST(LaunchEnv, ItsOwnVariablesComeFirst) {
  auto launch = read({{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"TUTTI_RANK", "1"},
                      {"TUTTI_NRANKS", "2"},
                      {"TUTTI_COMM_ID", "[::1]:4000"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->root, (SocketAddress{.host = "::1", .port = 4000}));
}

TEST(LaunchEnv, RefusesWhatDoesNotFit) {
  const std::map<std::string, std::string> bad[] = {
      {{"RANK", "x"}, {"WORLD_SIZE", "8"}},
      {{"RANK", "8"}, {"WORLD_SIZE", "8"}},
      {{"RANK", "-1"}, {"WORLD_SIZE", "8"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "0"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "65536"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "65535"}},
      {{"TUTTI_RANK", "0"}, {"TUTTI_NRANKS", "2"}, {"TUTTI_COMM_ID", "nohost"}},
  };
  for (const auto& variables : bad) {
    auto launch = read(variables);
    ASSERT_FALSE(launch);
    EXPECT_EQ(launch.error().code, Code::invalid_argument) << launch.error().text();
    EXPECT_FALSE(launch.error().what.empty());
  }
  auto none = read({{"RANK", "0"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::invalid_usage);
}

}  // namespace
}  // namespace tutti
