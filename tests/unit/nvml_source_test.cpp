// What becomes of the answers of NVIDIA's driver, and of its silence.
#include <dlfcn.h>

#include <gtest/gtest.h>

#include "support/fake_nvml.h"
#include "topology/graph/path.h"
#include "topology/search/warnings.h"
#include "topology/sources/detect.h"

namespace tutti::topology {
namespace {

using testing::FakeGpu;
using testing::FakeLink;
using testing::FakeNvml;
using ::testing::Test;

std::string bus(int gpu) {
  return "0000:" + std::to_string(10 + gpu) + ":00.0";
}

/// GPUs as /sys shows them: each below a switch of its own, in one NUMA node.
Topology of_sysfs(int gpus) {
  Topology machine{.nvlink_known = false};
  const int node = machine.add(
      {.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0, .cpus = "0-31", .source = "sysfs"});
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const int root = machine.add({.kind = DeviceKind::host_bridge, .name = "root", .parent = node});
    machine.add(
        {.kind = DeviceKind::gpu, .bus_id = bus(gpu), .parent = root, .vendor = 0x10de, .gbps = 48, .source = "sysfs"});
  }
  normalise(machine);
  return machine;
}

/// Each with `links` to each other.
std::vector<FakeGpu> meshed(int gpus, int links) {
  std::vector<FakeGpu> all;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    all.push_back({.bus_id = bus(gpu), .p2p = std::vector<int>(static_cast<std::size_t>(gpus), 0)});
    for (int other = 0; other < gpus; ++other)
      for (int link = 0; link < links && other != gpu; ++link) all.back().links.push_back({.remote = bus(other)});
  }
  return all;
}

class NvmlSource : public Test {
 protected:
  explicit NvmlSource(const char* path = TUTTI_FAKE_NVML) : path_(path), library_(::dlopen(path, RTLD_NOW)) {
    const auto answers = library_ ? reinterpret_cast<FakeNvml* (*)()>(::dlsym(library_, "fake_nvml")) : nullptr;
    nvml_ = answers ? answers() : nullptr;
  }
  ~NvmlSource() override {
    if (library_) ::dlclose(library_);
  }
  void SetUp() override {
    ASSERT_TRUE(nvml_) << ::dlerror();
    *nvml_ = {};
  }
  Topology asked(Topology machine) {
    add_nvml(machine, path_);
    normalise(machine);
    EXPECT_EQ(nvml_->started, nvml_->stopped);
    return machine;
  }
  /// The only note there is.
  static std::string note(const Topology& machine) {
    EXPECT_EQ(machine.notes.size(), 1u) << ::testing::PrintToString(machine.notes);
    return machine.notes.empty() ? "" : machine.notes.front();
  }

  std::string path_;
  void* library_;
  FakeNvml* nvml_ = nullptr;
};

TEST_F(NvmlSource, GivesNumbersAndLinks) {
  nvml_->gpus = meshed(4, 6);
  std::swap(nvml_->gpus[0].bus_id, nvml_->gpus[3].bus_id);  // NVML's order is not that of the addresses
  for (FakeGpu& gpu : nvml_->gpus) gpu.links.clear();
  nvml_->gpus[0].links.assign(6, {.remote = bus(0)});
  nvml_->gpus[3].links.assign(6, {.remote = bus(3)});
  const Topology machine = asked(of_sysfs(4));
  EXPECT_TRUE(machine.nvlink_known);
  EXPECT_TRUE(machine.notes.empty()) << ::testing::PrintToString(machine.notes);
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(machine[gpus[0]].bus_id, bus(3));
  EXPECT_EQ(machine[gpus[0]].name, "GPU0");
  EXPECT_EQ(machine[gpus[0]].compute, 90);
  EXPECT_EQ(cell(machine, gpus[0], gpus[3]), "NV6");
  EXPECT_EQ(cell(machine, gpus[0], gpus[1]), "NODE");
  EXPECT_DOUBLE_EQ(path(machine, gpus[0], gpus[3]).gbps, 6 * 20.6);
}

TEST_F(NvmlSource, SwitchesSeenAndHidden) {
  nvml_->gpus = meshed(4, 0);
  for (FakeGpu& gpu : nvml_->gpus)
    for (int link = 0; link < 18; ++link)
      gpu.links.push_back(link < 9 ? FakeLink{.remote = "0000:c0:00.0", .remote_type = 2}  // /sys shows it
                                   : FakeLink{.remote = "0fff:ff:1f.0", .remote_type = link % 2 == 0 ? 2 : -1});
  Topology shown = of_sysfs(4);
  shown.add({.kind = DeviceKind::nvswitch, .name = "NVS0", .bus_id = "0000:c0:00.0", .source = "sysfs"});
  const Topology machine = asked(std::move(shown));
  EXPECT_EQ(machine.of_kind(DeviceKind::nvswitch).size(), 2u);
  const std::vector<int> gpus = machine.gpus();
  EXPECT_EQ(cell(machine, gpus[0], gpus[2]), "NV18");
  EXPECT_TRUE(warnings(machine).empty()) << ::testing::PrintToString(warnings(machine));
}

TEST_F(NvmlSource, LinksThatAreDownOrForNoPeersDoNotCount) {
  nvml_->gpus = meshed(2, 8);
  nvml_->gpus[0].links[3].active = false;
  nvml_->gpus[0].links[4].peer = false;
  const Topology machine = asked(of_sysfs(2));
  EXPECT_EQ(cell(machine, machine.gpus()[0], machine.gpus()[1]), "NV6");
  const std::vector<std::string> lines = warnings(machine);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "GPU0 has 6 NVLinks to GPU1, which has 8 back: the smaller number is used");
}

TEST_F(NvmlSource, LinksToTheCpu) {
  nvml_->gpus = meshed(1, 0);
  nvml_->gpus[0].compute = 70;
  nvml_->gpus[0].links.assign(3, {.remote = "0004:04:00.0", .remote_type = 1});
  const Topology power = asked(of_sysfs(1));
  ASSERT_EQ(power.links.size(), 2u);
  EXPECT_EQ(power.links[0].kind, LinkKind::memory);
  EXPECT_EQ(power.links[0].count, 3);

  nvml_->gpus = meshed(1, 0);
  nvml_->gpus[0].c2c_links = 10;
  nvml_->gpus[0].c2c_mbps = 44712;
  nvml_->gpus[0].memory_node = 4;
  const Topology superchip = asked(of_sysfs(1));
  const int gpu = superchip.gpus()[0];
  EXPECT_EQ(superchip[gpu].memory_numa, 4);
  const Path way = path(superchip, gpu, superchip.of_kind(DeviceKind::numa)[0]);
  EXPECT_EQ(way.kind, PathKind::c2c);
  EXPECT_NEAR(way.gbps, 447.12, 1e-9);
}

TEST_F(NvmlSource, TheFabric) {
  nvml_->gpus = meshed(3, 0);
  nvml_->gpus[0].fabric_state = nvml_->gpus[1].fabric_state = 3;
  nvml_->gpus[1].fabric_status = 999;
  nvml_->gpus[2].fabric_state = 2;
  nvml_->gpus[0].clique = 7;
  const Topology machine = asked(of_sysfs(3));
  const std::vector<int> gpus = machine.gpus();
  EXPECT_EQ(machine[gpus[0]].fabric, "abababababababababababababababab/7");
  EXPECT_FALSE(machine[gpus[0]].off_fabric);
  EXPECT_TRUE(machine[gpus[1]].off_fabric);
  EXPECT_TRUE(machine[gpus[2]].off_fabric);
  const std::vector<std::string> lines = warnings(machine);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "GPU2 has not joined the NVLink fabric, according to its driver"),
            1);
}

TEST_F(NvmlSource, PeersThatMayNot) {
  nvml_->gpus = meshed(2, 4);
  nvml_->gpus[0].p2p = {0, 1};
  const Topology machine = asked(of_sysfs(2));
  EXPECT_EQ(machine.p2p.at({machine.gpus()[0], machine.gpus()[1]}), "CNS");
  const std::vector<std::string> lines = warnings(machine);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("have NVLinks, but P2P is CNS"), std::string::npos);
}

TEST_F(NvmlSource, VirtualMachineWithoutPci) {
  nvml_->gpus = meshed(4, 2);
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    nvml_->gpus[gpu].cpus = {gpu < 2 ? 0xffffu : 0xffff0000u};
    nvml_->gpus[gpu].ancestor = gpu < 2 ? std::vector<int>{0, 10, 50, 50} : std::vector<int>{50, 50, 30, 40};
    nvml_->gpus[gpu].pcie_generation = 5;
    nvml_->gpus[gpu].pcie_width = 16;
    nvml_->gpus[gpu].links.clear();
  }
  Topology machine;
  for (int node = 0; node < 2; ++node)
    machine.add(
        {.kind = DeviceKind::numa, .name = "NUMA", .index = node, .numa = node, .cpus = node == 0 ? "0-15" : "16-31"});
  machine = asked(std::move(machine));
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(machine[gpus[0]].numa, 0);
  EXPECT_EQ(machine[gpus[3]].numa, 1);
  EXPECT_EQ(machine[gpus[3]].gbps, 48);
  EXPECT_EQ(cell(machine, gpus[0], gpus[1]), "PIX");
  EXPECT_EQ(cell(machine, gpus[2], gpus[3]), "NODE");
  EXPECT_EQ(cell(machine, gpus[3], gpus[2]), "PHB") << "as the driver says it, even if it is odd";
  EXPECT_EQ(cell(machine, gpus[0], gpus[3]), "SYS");
  EXPECT_TRUE(machine.notes.empty()) << ::testing::PrintToString(machine.notes);
}

TEST_F(NvmlSource, WhatTheDriverDoesNotListIsLeftOut) {
  nvml_->gpus = meshed(2, 4);
  nvml_->gpus[1].bus_id = bus(3);
  nvml_->gpus[0].links = {{.remote = bus(1)}, {.remote = bus(3)}};
  nvml_->gpus[1].links = {{.remote = bus(0)}, {.remote = bus(2)}};
  Topology shown = of_sysfs(4);
  shown.add({.kind = DeviceKind::gpu, .bus_id = "0000:05:00.0", .vendor = 0x1002, .source = "sysfs"});
  const Topology machine = asked(std::move(shown));
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(machine[gpus[1]].bus_id, bus(3));
  EXPECT_EQ(machine[gpus[1]].name, "GPU1");
  EXPECT_EQ(machine[gpus[2]].name, "GPU2") << "of another maker: its number is behind those of NVML";
  EXPECT_EQ(cell(machine, gpus[0], gpus[1]), "NV1");
  EXPECT_EQ(note(machine), "NVML lists 2 of 4 NVIDIA GPUs; 0000:11:00.0, 0000:12:00.0 cannot be used by this process");
}

TEST_F(NvmlSource, PartsOfAGpu) {
  nvml_->gpus = meshed(2, 4);
  nvml_->gpus[0].mig = true;
  nvml_->gpus[0].instances = 3;
  const Topology machine = asked(of_sysfs(2));
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(machine[gpus[2]].bus_id, bus(0));
  EXPECT_EQ(machine[gpus[2]].partition, "2");
  EXPECT_EQ(machine[gpus[3]].bus_id, bus(1));
  EXPECT_TRUE(machine.links.empty());
  EXPECT_EQ(cell(machine, gpus[0], gpus[1]), "PIX");
  EXPECT_NE(note(machine).find("is in MIG mode: its 3 instances"), std::string::npos);

  nvml_->gpus[0].instances = 0;
  EXPECT_NE(note(asked(of_sysfs(2))).find("nothing can run on it"), std::string::npos);
}

/// Whatever fails, there is a machine with its GPUs, and one line that says what.
class NvmlFailure : public NvmlSource, public ::testing::WithParamInterface<const char*> {};

TEST_P(NvmlFailure, LeavesAMachineAndALine) {
  for (const int code : {999, 15, 13}) {
    *nvml_ = {};
    nvml_->gpus = meshed(4, 4);
    for (FakeGpu& gpu : nvml_->gpus) gpu.compute = 80;
    for (FakeGpu& gpu : nvml_->gpus)
      for (FakeLink& link : gpu.links) link.remote_type = -1;
    nvml_->failing[GetParam()] = code;
    const Topology machine = asked(of_sysfs(4));
    EXPECT_EQ(machine.gpus().size(), 4u);
    EXPECT_FALSE(matrix_text(machine).empty());
    const std::string line = note(machine);
    EXPECT_NE(line.find("NVML"), std::string::npos);
    EXPECT_NE(line.find("error " + std::to_string(code)), std::string::npos) << line;
    EXPECT_EQ(cell(machine, machine.gpus()[0], machine.gpus()[1]), "NODE");
  }
}
INSTANTIATE_TEST_SUITE_P(Calls, NvmlFailure,
                         ::testing::Values("Init", "GetCount", "GetHandleByIndex", "GetPciInfo", "GetNvLinkState",
                                           "GetNvLinkRemotePciInfo"));

/// What can be done without says nothing.
class NvmlLack : public NvmlSource, public ::testing::WithParamInterface<const char*> {};

TEST_P(NvmlLack, IsNoLoss) {
  nvml_->gpus = meshed(4, 4);
  nvml_->failing[GetParam()] = 3;
  const Topology machine = asked(of_sysfs(4));
  EXPECT_TRUE(machine.notes.empty()) << ::testing::PrintToString(machine.notes);
  EXPECT_EQ(cell(machine, machine.gpus()[0], machine.gpus()[1]), "NV4");
  EXPECT_GT(path(machine, machine.gpus()[0], machine.gpus()[1]).gbps, 4 * 19.9);
}
INSTANTIATE_TEST_SUITE_P(Calls, NvmlLack,
                         ::testing::Values("GetNvLinkCapability", "GetNvLinkVersion", "GetCudaComputeCapability",
                                           "GetNvLinkRemoteDeviceType", "GetFieldValues", "GetGpuFabricInfoV",
                                           "GetP2PStatus", "GetTopologyCommonAncestor", "GetMigMode",
                                           "GetMaxMigDeviceCount", "GetCpuAffinity"));

class OldNvml : public NvmlSource {
 protected:
  OldNvml() : NvmlSource(TUTTI_FAKE_NVML_OLD) {}
};

TEST_F(OldNvml, SaysEnough) {
  nvml_->gpus = meshed(4, 1);
  for (FakeGpu& gpu : nvml_->gpus)
    for (FakeLink& link : gpu.links) link.version = 1;
  const Topology machine = asked(of_sysfs(4));
  EXPECT_TRUE(machine.notes.empty()) << ::testing::PrintToString(machine.notes);
  EXPECT_EQ(cell(machine, machine.gpus()[1], machine.gpus()[3]), "NV1");
  EXPECT_EQ(machine.links.front().gbps, 18) << "a link of the first version";
}

TEST(NvmlAbsent, IsSaidWhereThereIsAGpuOfNvidia) {
  Topology machine = of_sysfs(1);
  add_nvml(machine, "libnvidia-ml.so.none");
  EXPECT_FALSE(machine.nvlink_known);
  ASSERT_EQ(machine.notes.size(), 1u);
  EXPECT_EQ(machine.notes[0], "libnvidia-ml.so.none is not there: NVLinks are not known");
  Topology without{.nvlink_known = true};
  add_nvml(without, "libnvidia-ml.so.none");
  EXPECT_TRUE(without.notes.empty());
}

}  // namespace
}  // namespace tutti::topology
