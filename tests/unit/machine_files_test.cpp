// Recorded machines that are easily read wrongly: fabrics that show as meshes, nodes of memory alone, unknown links.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "topology/graph/path.h"
#include "topology/search/search.h"
#include "topology/search/warnings.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti::topology {
namespace {

Topology machine_in(const std::string& text) {
  auto machine = read(text, "file");
  EXPECT_TRUE(machine) << machine.error().text();
  return machine ? *std::move(machine) : Topology{};
}

Topology recorded(const std::string& name) {
  auto machine = read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
  EXPECT_TRUE(machine) << machine.error().text();
  return machine ? *std::move(machine) : Topology{};
}

bool said(const Topology& machine, std::string_view what) {
  return std::ranges::any_of(warnings(machine),
                             [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

/// A matrix of GPUs: `cell(a, b)` is what it says of two.
template <class Cell>
std::string matrix(int gpus, Cell cell) {
  std::string text;
  for (int gpu = 0; gpu < gpus; ++gpu) text += fmt::format("\tGPU{}", gpu);
  for (int a = 0; a < gpus; ++a) {
    text += fmt::format("\nGPU{}", a);
    for (int b = 0; b < gpus; ++b) text += fmt::format("\t{}", a == b ? std::string(" X ") : cell(a, b));
  }
  return text + "\n";
}

std::vector<int> fabric_links(const Topology& machine) {
  std::vector<int> links;
  for (const int gpu : machine.gpus()) links.push_back(machine.fabric_links(gpu));
  return links;
}

/// What leaves a GPU over NVLink, GB/s.
double leaves(const Topology& machine, int gpu) {
  double gbps = 0;
  for (const Link& link : machine.links) gbps += link.from == gpu ? link.count * link.gbps : 0;
  return gbps;
}

constexpr double hopper_gbps = 18 * 20.6;

TEST(Fabric, OneGpuOffItLeavesTheOthersOnIt) {
  const Topology machine = recorded("matrix-8-one-off.txt");
  EXPECT_EQ(fabric_links(machine), (std::vector<int>{18, 18, 18, 18, 18, 0, 18, 18}));
  for (const int gpu : machine.gpus()) EXPECT_LE(leaves(machine, gpu), hopper_gbps + 1e-6);
  EXPECT_TRUE(said(machine, "GPU5 is off the NVLink fabric: it has no NVLink, others have 18"));
  const Search seven = search(with_gpus(machine, {0, 1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(seven.rings.kind, PathKind::nvl);
  EXPECT_NEAR(seven.rings.gbps(), hopper_gbps, 1e-6);
}

TEST(Fabric, TwoBoardsAreTwoFabrics) {
  const Topology machine =
      machine_in(matrix(16, [](int a, int b) { return std::string(a / 8 == b / 8 ? "NV12" : "SYS"); }));
  EXPECT_EQ(fabric_links(machine), std::vector<int>(16, 12));
  EXPECT_EQ(machine.of_kind(DeviceKind::nvswitch).size(), 2u);
  EXPECT_EQ(cell(machine, machine.gpus()[0], machine.gpus()[7]), "NV12");
  EXPECT_EQ(cell(machine, machine.gpus()[7], machine.gpus()[8]), "SYS");
  EXPECT_FALSE(said(machine, "fit no"));
}

TEST(Fabric, AGpuWithFewerLinksKeepsThem) {
  const Topology machine =
      machine_in(matrix(8, [](int a, int b) { return std::string(a == 3 || b == 3 ? "NV16" : "NV18"); }));
  EXPECT_EQ(fabric_links(machine), (std::vector<int>{18, 18, 18, 16, 18, 18, 18, 18}));
  EXPECT_EQ(cell(machine, machine.gpus()[3], machine.gpus()[0]), "NV16");
  EXPECT_TRUE(said(machine, "GPU3 has 16 NVLinks, others have 18"));
}

TEST(Fabric, APairThatContradictsItIsSaid) {
  const Topology machine =
      machine_in(matrix(8, [](int a, int b) { return std::string(a + b == 7 && a * b == 0 ? "SYS" : "NV18"); }));
  EXPECT_EQ(fabric_links(machine), std::vector<int>(8, 18));
  EXPECT_TRUE(said(machine, "GPU0 and GPU7 have 0 NVLinks according to the source, and 18 by the switches"));
}

TEST(Fabric, AMeshThatGpusCanHaveStaysOne) {
  for (const char* const name : {"cube-mesh-double.txt", "all-to-all-4x3.txt", "all-to-all-8x1.txt"})
    EXPECT_TRUE(recorded(name).of_kind(DeviceKind::nvswitch).empty()) << name;
}

/// hwloc can replace switches by what they give: each GPU then has the links of all to all.
TEST(Fabric, HwlocsMatrixWithoutSwitchesIsOneToo) {
  std::string text =
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"><object type=\"NUMANode\" "
      "os_index=\"0\" cpuset=\"0x1\"/>";
  std::string indexes, values;
  for (int gpu = 0; gpu < 8; ++gpu) {
    text += fmt::format(
        "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"0000:0{}:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] "
        "a1\"><object type=\"OSDev\" gp_index=\"{}\" name=\"nvml{}\" osdev_type=\"1\"/></object>",
        10 + gpu, gpu + 1, 30 + gpu, gpu);
    indexes += fmt::format("{} ", 30 + gpu);
    for (int other = 0; other < 8; ++other) values += gpu == other ? "1000000 " : "450000 ";
  }
  text += fmt::format(
      "</object><distances2 nbobjs=\"8\" name=\"NVLinkBandwidth\"><indexes>{}</indexes><u64values>{}</u64values>"
      "</distances2></topology>",
      indexes, values);
  const Topology machine = machine_in(text);
  EXPECT_EQ(fabric_links(machine), std::vector<int>(8, 18));
  EXPECT_NEAR(search(machine).rings.gbps(), hopper_gbps, 1e-6);
}

TEST(Fabric, NcclsRowsFromGpuToGpuAreOneToo) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\">";
  for (int gpu = 0; gpu < 4; ++gpu) {
    text += fmt::format("<pci busid=\"0000:0{}:00.0\" class=\"0x030200\"><gpu dev=\"{}\" sm=\"80\">", gpu + 1, gpu);
    for (int other = 0; other < 4; ++other)
      if (gpu != other)
        text += fmt::format("<nvlink target=\"0000:0{}:00.0\" count=\"12\" tclass=\"0x030200\"/>", other + 1);
    text += "</gpu></pci>";
  }
  const Topology machine = machine_in(text + "</cpu></system>");
  EXPECT_EQ(fabric_links(machine), std::vector<int>(4, 12));
  EXPECT_NEAR(search(machine).rings.gbps(), 12 * 20, 1e-6);
}

TEST(Hwloc3, IsRead) {
  const Topology machine = recorded("hwloc3-memory-alone.xml");
  ASSERT_EQ(machine.gpus().size(), 1u);
  EXPECT_EQ(machine[machine.gpus()[0]].bus_id, "0000:01:00.0");
  ASSERT_EQ(machine.nics().size(), 1u) << "its types are bits";
  EXPECT_EQ(machine[machine.nics()[0]].name, "mlx5_0") << "verbs before net";
  EXPECT_EQ(machine.of_kind(DeviceKind::package).size(), 2u);
  EXPECT_DOUBLE_EQ(cpu_gbps(machine), 22);
  const auto later = read("<topology version=\"4.0\"/>", "later.xml");
  ASSERT_FALSE(later);
  EXPECT_TRUE(later.error().what.find("the format is hwloc 4.0; 1, 2 and 3 can be read") != std::string::npos)
      << later.error().what;
  EXPECT_FALSE(read("<topology version=\"30.1\"/>", "later.xml"));
  // The maker of Arm's CPUs is where hwloc 3 puts what is said of the whole machine.
  const Topology arm = machine_in(
      "<topology version=\"3.0\"><object type=\"Machine\" cpuset=\"0x1\"><object type=\"NUMANode\" os_index=\"0\" "
      "cpuset=\"0x1\"/></object><info name=\"Architecture\" value=\"aarch64\"/></topology>");
  EXPECT_EQ(arm[arm.of_kind(DeviceKind::numa)[0]].maker, CpuMaker::arm);
}

std::vector<int> nodes_of(const Topology& machine) {
  std::vector<int> numbers;
  for (const int node : machine.of_kind(DeviceKind::numa)) numbers.push_back(machine[node].index);
  std::ranges::sort(numbers);
  return numbers;
}

TEST(MemoryAlone, IsNoNodeOfRanksInHwlocsFiles) {
  const Topology machine = recorded("hwloc3-memory-alone.xml");
  EXPECT_EQ(nodes_of(machine), (std::vector<int>{0, 1})) << "2 and 3 are HBM, 4 is CXL";
  EXPECT_EQ(machine[machine.gpus()[0]].numa, 1) << "not 3, which comes first";
  EXPECT_EQ(machine.above(machine.gpus()[0], DeviceKind::package),
            machine[machine.of_kind(DeviceKind::numa)[1]].parent);
  const auto node = [](int number, const char* cpus, const char* more = "") {
    return fmt::format("<object type=\"NUMANode\" os_index=\"{}\" cpuset=\"{}\" {}/>", number, cpus, more);
  };
  const auto nodes_in = [&](const std::string& inside) {
    return nodes_of(machine_in("<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xff\">" + inside +
                               "</object></topology>"));
  };
  EXPECT_EQ(nodes_in(node(1, "0xff") + node(0, "0xff")), std::vector<int>{0}) << "without kinds: the lower number";
  EXPECT_EQ(nodes_in(node(0, "0xff", "subtype=\"HBM\"")), std::vector<int>{0}) << "all its memory is HBM";
  EXPECT_EQ(nodes_in("<object type=\"MemCache\" cpuset=\"0xff\">" + node(0, "0xff") + "</object>"),
            std::vector<int>{0});
  EXPECT_EQ(nodes_in("<object type=\"Group\" cpuset=\"0x0f\">" + node(0, "0x0f") + "</object><object type=\"Group\">" +
                     node(1, "0xf0") + "</object>" + node(2, "0xff")),
            (std::vector<int>{0, 1}));
}

/// A device beside memory that has a cache is near it.
TEST(MemoryAlone, MemoryBehindACacheIsAPlace) {
  const Topology machine = machine_in(
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xff\"><object type=\"MemCache\" cpuset=\"0xff\">"
      "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xff\"/></object><object type=\"PCIDev\" "
      "pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] a1\"/></object></topology>");
  ASSERT_EQ(machine.gpus().size(), 1u);
  EXPECT_EQ(machine[machine.gpus()[0]].numa, 0);
}

TEST(MemoryAlone, IsNoNodeOfRanksInNcclsFiles) {
  const Topology machine = machine_in(
      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu "
      "dev=\"0\" sm=\"90\"/></pci></cpu><cpu numaid=\"2\" affinity=\"00000000,00000000\"/><cpu numaid=\"1\" "
      "affinity=\"\"/></system>");
  EXPECT_EQ(nodes_of(machine), (std::vector<int>{0, 1})) << "of 1 the CPUs are not known";
  // A node whose CPUs are not known is not written as one without any.
  Topology unknown;
  unknown.add({.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0});
  const auto again = read_nccl(write_nccl(unknown));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(nodes_of(*again), std::vector<int>{0});
}

constexpr const char* not_known = "NVLinks are not known";

TEST(UnknownLinks, AreSaidOfFiles) {
  EXPECT_TRUE(said(recorded("hwloc3-memory-alone.xml"), not_known));
  EXPECT_FALSE(said(recorded("hwloc-2gpu.xml"), not_known)) << "it has NVLinkBandwidth";
  // A cloud's template has functions, and no driver was asked.
  const Topology cloud = machine_in(
      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/>"
      "</cpu></system>");
  EXPECT_FALSE(cloud.nvlink_known);
  EXPECT_TRUE(said(cloud, not_known));
  const Topology asked = machine_in(
      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu "
      "dev=\"0\" sm=\"90\"/></pci></cpu></system>");
  EXPECT_TRUE(asked.nvlink_known);
  EXPECT_FALSE(said(asked, not_known)) << "the driver said that there is none";
  const Topology p2p = machine_in("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n");
  EXPECT_FALSE(p2p.nvlink_known);
  EXPECT_TRUE(said(p2p, "how the GPUs are connected is not known"));
}

TEST(UnknownLinks, StayUnknownInNcclsFormat) {
  const Topology machine = recorded("hwloc3-memory-alone.xml");
  const auto again = read_nccl(write_nccl(machine));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_FALSE(again->nvlink_known);
  EXPECT_TRUE(said(*again, not_known));
  EXPECT_TRUE(read_nccl(write_nccl(recorded("switched-8.xml")))->nvlink_known);
}

}  // namespace
}  // namespace tutti::topology
