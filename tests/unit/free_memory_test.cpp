// The room is the least that the host and any control group above leave; what cannot be read sets no limit.
#include "transport/free_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tutti {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<FreeMemory> room_of(const Files& files) {
  return free_memory([&files](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? "" : found->second;
  });
}

const std::string meminfo =
    "MemTotal:       24000 kB\nMemFree: 1 kB\nMemAvailable:   20000 kB\nSwapFree:         500 kB\n";

TEST(FreeMemory, WithoutGroupsIsWhatTheHostHas) {
  const auto room = room_of({{"/proc/meminfo", meminfo}});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 20500u * 1024);
  EXPECT_NE(room->limit.find("MemAvailable"), std::string::npos);
}

TEST(FreeMemory, CountsWhatAGroupMayStillTake) {
  const auto room = room_of({{"/proc/meminfo", meminfo},
                             {"/proc/self/cgroup", "0::/job/step\n"},
                             {"/sys/fs/cgroup/job/step/memory.max", "5000\n"},
                             {"/sys/fs/cgroup/job/step/memory.current", "3000\n"},
                             {"/sys/fs/cgroup/job/step/memory.stat", "anon 1\ninactive_file 700\nactive_file 9\n"}});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 2700u) << "file pages not in use can be dropped";
  EXPECT_EQ(room->limit, "/sys/fs/cgroup/job/step/memory.max");
}

TEST(FreeMemory, LooksAtGroupsAboveToo) {
  const auto room = room_of({{"/proc/meminfo", meminfo},
                             {"/proc/self/cgroup", "0::/job/step\n"},
                             {"/sys/fs/cgroup/job/step/memory.max", "max\n"},
                             {"/sys/fs/cgroup/job/step/memory.current", "10\n"},
                             {"/sys/fs/cgroup/job/memory.max", "900\n"},
                             {"/sys/fs/cgroup/job/memory.current", "400\n"},
                             {"/sys/fs/cgroup/memory.max", "800\n"},
                             {"/sys/fs/cgroup/memory.current", "100\n"}});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 500u);
}

TEST(FreeMemory, ReadsTheFirstVersionOfGroups) {
  const auto room = room_of({{"/proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n"},
                             {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n"},
                             {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1500\n"},
                             {"/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 600\n"}});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 100u);
}

TEST(FreeMemory, IsUnknownWhereNothingCanBeRead) {
  EXPECT_FALSE(room_of({}));
}

TEST(FreeMemory, SurvivesNonsense) {
  EXPECT_FALSE(room_of({{"/proc/meminfo", "MemAvailable: lots\n"}}));
  EXPECT_FALSE(room_of({{"/proc/meminfo", ""}, {"/proc/self/cgroup", "\n:\n0\n::\n0::\nmemory"}}));
  const auto room = room_of({{"/proc/self/cgroup", "0::relative"},
                             {"/sys/fs/cgroup/memory.max", "7"},
                             {"/sys/fs/cgroup/memory.current", "9"}});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 0u);
}

TEST(FreeMemory, OfThisHostIsKnown) {
  const auto room = free_memory();
  ASSERT_TRUE(room);
  EXPECT_GT(room->bytes, 0u);
}

}  // namespace
}  // namespace tutti
