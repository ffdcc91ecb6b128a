// What files of /sys say of CPUs that are near each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "place/cpu_map.h"
#include "support/folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class Cpus : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) const {
    const fs::path at = fs::path(folder_.path()) / "sys" / path;
    fs::create_directories(at.parent_path());
    std::ofstream(at) << text << '\n';
  }
  void cache(int index, int level, const std::string& type, const std::string& shared) const {
    const std::string folder = "devices/system/cpu/cpu1/cache/index" + std::to_string(index);
    file(folder + "/level", std::to_string(level));
    file(folder + "/type", type);
    file(folder + "/shared_cpu_list", shared);
  }
  std::string part(Part part) { return text_of(map_.part_of(part, 1)); }

  Folder folder_;
  CpuMap map_{folder_.path()};
};

TEST_F(Cpus, AreInACoreACacheANodeAndAPackage) {
  file("devices/system/cpu/cpu1/topology/core_cpus_list", "1,17");
  file("devices/system/cpu/cpu1/topology/package_cpus_list", "0-7,16-23");
  cache(0, 1, "Data", "1,17");
  cache(1, 1, "Instruction", "1,17");
  cache(2, 3, "Unified", "0-1,16-17");
  file("devices/system/node/node0/cpulist", "0-3,16-19");
  file("devices/system/node/node1/cpulist", "4-7,20-23");
  EXPECT_EQ(part(Part::core), "1,17");
  EXPECT_EQ(part(Part::cache), "0-1,16-17");
  EXPECT_EQ(part(Part::node), "0-3,16-19");
  EXPECT_EQ(part(Part::package), "0-7,16-23");
}

TEST_F(Cpus, OfLinuxBefore5_3) {
  file("devices/system/cpu/cpu1/topology/thread_siblings_list", "1,17");
  file("devices/system/cpu/cpu1/topology/core_siblings_list", "0-7,16-23");
  EXPECT_EQ(part(Part::core), "1,17");
  EXPECT_EQ(part(Part::package), "0-7,16-23");
}

TEST_F(Cpus, OfWhichNothingIsSaid) {
  for (const Part unknown : {Part::core, Part::cache, Part::node, Part::package}) EXPECT_EQ(part(unknown), "none");
  EXPECT_TRUE(map_.nodes().empty());
  EXPECT_EQ(map_.device("0000:81:00.0").node, -1);
}

TEST_F(Cpus, NodesMayHaveMemoryAlone) {
  file("devices/system/node/node0/cpulist", "0-3");
  file("devices/system/node/node10/cpulist", "");
  file("devices/system/node/node2/cpulist", "4-7");
  file("devices/system/node/online", "0,2,10");
  const auto nodes = map_.nodes();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[1].number, 2);
  EXPECT_EQ(text_of(nodes[1].cpus), "4-7");
  EXPECT_EQ(nodes[2].number, 10);
  EXPECT_TRUE(nodes[2].cpus.none());
}

TEST_F(Cpus, NearADevice) {
  file("bus/pci/devices/0000:81:00.0/local_cpulist", "4-7");
  file("bus/pci/devices/0000:81:00.0/numa_node", "1");
  file("devices/system/node/node0/cpulist", "0-3");
  EXPECT_EQ(text_of(map_.device("0000:81:00.0").cpus), "4-7");
  EXPECT_EQ(map_.device("0000:81:00.0").node, -1) << "the only node";
  file("devices/system/node/node1/cpulist", "4-7");
  CpuMap both(folder_.path());
  EXPECT_EQ(both.device("0000:81:00.0").node, 1);
  EXPECT_EQ(both.device("").node, -1);
}

}  // namespace
}  // namespace tutti
