// The value type, paths, CPUs, warnings, files that are written, placement and the picture.
#include "topology/graph/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/pictures/picture.h"
#include "analysis/pictures/report.h"
#include "topology/graph/cpus.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"
#include "topology/search/search.h"
#include "topology/search/warnings.h"
#include "topology/sources/nccl_xml.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti::topology {
namespace {

Topology recorded(const std::string& name) {
  auto machine = read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
  EXPECT_TRUE(machine) << name;
  return machine ? *std::move(machine) : Topology{};
}

const char* const names[] = {"switched-8.xml",       "switched-8-one-off.xml", "cube-mesh-double.txt",
                             "all-to-all-4x3.txt",   "hwloc-2gpu.xml",         "template-fragment.xml",
                             "cube-mesh-single.txt", "all-to-all-8x1.txt",     "hwloc-4x6-divided.xml"};

std::vector<std::string> cells(const Topology& machine) {
  std::vector<std::string> all;
  for (const int from : matrix_devices(machine))
    for (const int to : matrix_devices(machine)) all.push_back(cell(machine, from, to));
  return all;
}

TEST(Cpus, ListsAndMasks) {
  EXPECT_EQ(list_of_cpus({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(cpus_of_list("7-8,0-2,5,1"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(cpus_of_list("x,3-1,-4,99999,2"), (std::vector<int>{2}));
  EXPECT_EQ(cpu_list_of_mask("ffff0000,00000003\n"), "0-1,48-63");
  EXPECT_EQ(mask_of_cpus(cpus_of_list("0-1,48-63")), "ffff0000,00000003");
  EXPECT_EQ(cpu_list_of_mask("no mask"), "");
  EXPECT_EQ(common_cpus("0-7,16-23", "4-19"), "4-7,16-19");
  EXPECT_EQ(common_cpus("0-7", ""), "");
}

TEST(Read, WhatOthersSpellOddly) {
  const auto cloud = read(
      "<cpu numaid=\"-1\" affinity=\"\"><pci busid=\"0000:00:04.0\" class=\"0x030200\" link_speed=\"Unknown\" "
      "link_width=\"255\"><gpu dev=\"0\" sm=\"75\" new=\"x\"><newlink target=\"y\"/></gpu></pci>"
      "<nic><net name=\"eth0\" dev=\"0\" speed=\"-1\"/></nic><cxl/></cpu>",
      "cloud.xml");
  ASSERT_TRUE(cloud) << cloud.error().text();
  EXPECT_EQ((*cloud)[cloud->gpus()[0]].gbps, 12);
  EXPECT_EQ((*cloud)[cloud->nics()[0]].network_gbps, 0);
  // Colours that have lost their first character, and lists of NUMA nodes.
  const auto pasted = read(
      "\t[4mGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID[0m\nGPU0\t X \tPXB\t0-71\t0,2-9\t1\n"
      "NIC0\tPXB\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n",
      "pasted.txt");
  ASSERT_TRUE(pasted) << pasted.error().text();
  EXPECT_EQ(cells(*pasted), (std::vector<std::string>{"X", "PXB", "PXB", "X"}));
  EXPECT_EQ((*pasted)[pasted->nics()[0]].name, "mlx5_0");
}

TEST(Read, MoreGpusThanCanBeShownAreRefused) {
  const auto machine = [](int gpus) {
    std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
    for (int gpu = 0; gpu < gpus; ++gpu)
      text +=
          fmt::format("<pci busid=\"{:04x}:01:00.0\" class=\"0x030200\"><gpu dev=\"{}\" sm=\"90\"/></pci>", gpu, gpu);
    return read(text + "</cpu></system>", "large.xml");
  };
  EXPECT_TRUE(machine(256));
  const auto refused = machine(3000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_EQ(refused.error().what, "large.xml: 3000 GPUs; at most 256 can be shown, leave some out");
}

TEST(Paths, AreTheSameBothWays) {
  for (const char* const name : names) {
    const Topology machine = recorded(name);
    for (const int from : matrix_devices(machine))
      for (const int to : matrix_devices(machine)) {
        const Path there = path(machine, from, to), back = path(machine, to, from);
        EXPECT_EQ(there.kind, back.kind) << name;
        EXPECT_EQ(there.gbps, back.gbps) << name;
        EXPECT_EQ(there.hops, back.hops) << name;
        EXPECT_EQ(there.hops == 0, from == to);
      }
  }
}

TEST(Paths, ByAnotherGpuOrByTheCpusOwnBus) {
  const Topology mesh = recorded("cube-mesh-double.txt");
  const std::vector<int> gpus = mesh.gpus();
  EXPECT_EQ(path(mesh, gpus[0], gpus[5]).kind, PathKind::nvb);
  EXPECT_EQ(path(mesh, gpus[0], gpus[5]).hops, 2);
  EXPECT_EQ(path(mesh, gpus[0], gpus[3]).gbps, 40);
  Topology chip;
  const int cpu = chip.add({.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0});
  const int gpu = chip.add({.kind = DeviceKind::gpu, .name = "GPU0", .index = 0});
  const int root = chip.add({.kind = DeviceKind::host_bridge, .name = "root", .parent = cpu});
  const int nic = chip.add({.kind = DeviceKind::nic, .name = "mlx5_0", .parent = root, .gbps = 48});
  chip[gpu].parent = cpu;
  chip.links.push_back({.from = gpu, .to = cpu, .kind = LinkKind::memory, .count = 10, .gbps = 45});
  EXPECT_EQ(path(chip, gpu, cpu).kind, PathKind::c2c);
  EXPECT_EQ(path(chip, gpu, nic).kind, PathKind::p2c);
  EXPECT_EQ(path(chip, gpu, nic).gbps, 48);
}

TEST(Warnings, SayWhatIsOdd) {
  Topology machine = recorded("switched-8.xml");
  const std::size_t before = warnings(machine).size();
  const auto said = [&](const std::string& what) {
    for (const std::string& line : warnings(machine))
      if (line.find(what) != std::string::npos) return true;
    return false;
  };
  const int gpu = machine.gpus()[3], other = machine.gpus()[4];
  machine[gpu].gbps = 12;
  machine[gpu].gbps_max = 48;
  EXPECT_TRUE(said("GPU3: its PCI link gives 12 GB/s and is made for 48"));
  machine[gpu].off_fabric = true;
  EXPECT_TRUE(said("GPU3 has not joined the NVLink fabric"));
  machine.links[0].count = 17;
  EXPECT_TRUE(said("GPU0 has 17 NVLinks, others have 18"));
  machine.p2p[{gpu, other}] = "TNS";
  EXPECT_TRUE(said("GPU3 and GPU4 have NVLinks, but P2P is TNS"));
  for (const int node : machine.of_kind(DeviceKind::numa)) machine[node].cpus = "0-63";
  EXPECT_TRUE(said("NUMA0, NUMA1 have identical affinity masks (0-63)"));
  EXPECT_EQ(warnings(machine).size(), before + 5);

  Topology pair = recorded("template-fragment.xml");
  const int nic =
      pair.add({.kind = DeviceKind::gpu, .name = "GPU1", .parent = pair[pair.gpus()[0]].parent, .index = 1});
  pair.p2p[{pair.gpus()[0], nic}] = "CNS";
  EXPECT_EQ(warnings(pair).front(),
            "GPU0 and GPU1 share a PCI switch (PIX), but P2P is CNS: blocked by ACS or the IOMMU");
  pair.p2p[{pair.gpus()[0], nic}] = "GNS";
  EXPECT_EQ(warnings(pair), pair.notes) << "not made for it";
}

/// Four devices, two links between any two, each divided into six GPUs at one address.
TEST(Divided, GpusOfOneDeviceShareItsLinks) {
  const Topology machine = recorded("hwloc-4x6-divided.xml");
  ASSERT_EQ(machine.gpus().size(), 24u);
  for (int nth = 0; nth < 24; ++nth) {
    const Device& gpu = machine[machine.gpus()[static_cast<std::size_t>(nth)]];
    EXPECT_EQ(gpu.index, nth);
    EXPECT_EQ(gpu.partition, std::to_string(nth % 6));
    EXPECT_EQ(gpu.bus_id, fmt::format("000{}:02:00.0", nth / 6));
  }
  EXPECT_EQ(path(machine, machine.gpus()[0], machine.gpus()[5]).kind, PathKind::loc);
  EXPECT_EQ(path(machine, machine.gpus()[5], machine.gpus()[6]).kind, PathKind::nvl);
  EXPECT_EQ(path(machine, machine.gpus()[5], machine.gpus()[6]).gbps, 72);

  // What four whole devices have: six rings, and each can send 3 x 72 GB/s.
  const Search found = search(machine);
  EXPECT_EQ(found.rings.kind, PathKind::nvl);
  EXPECT_EQ(found.rings.orders.size(), 6u);
  EXPECT_DOUBLE_EQ(found.rings.gbps(), 216);
  EXPECT_DOUBLE_EQ(found.bound_gbps, 288);
  EXPECT_NEAR(found.ring_gather_gbps, 216 * 24.0 / 23, 1e-9);
  EXPECT_NEAR(found.tree_gather_gbps, 288, 1e-9);
  std::map<std::pair<int, int>, double> between;  // devices
  for (const auto& order : found.rings.orders)
    for (std::size_t at = 0; at < order.size(); ++at)
      between[{order[at] / 6, order[(at + 1) % order.size()] / 6}] += found.rings.gbps_each;
  for (const auto& [devices, gbps] : between)
    EXPECT_TRUE(devices.first == devices.second || gbps <= 72) << devices.first << " to " << devices.second;
  std::map<std::pair<int, int>, double> by_trees;
  for (const ChosenTree& tree : found.trees) {
    EXPECT_EQ(std::set(tree.gpus.begin(), tree.gpus.end()).size(), 24u);
    for (std::size_t at = 1; at < tree.gpus.size(); ++at)
      by_trees[{tree.parent[at] / 6, tree.gpus[at] / 6}] += tree.gbps;
  }
  for (const auto& [devices, gbps] : by_trees)
    EXPECT_TRUE(devices.first == devices.second || gbps <= 72 + 1e-9) << devices.first << " to " << devices.second;

  // Three parts of one device and one of another: what the three have leaves by two links.
  EXPECT_DOUBLE_EQ(search(with_gpus(machine, {0, 1, 2, 6})).bound_gbps, 96);
}

TEST(Written, HwlocsFormatIsReadAgain) {
  for (const char* const name : names) {
    Topology machine = recorded(name);
    std::vector<bool> keep;  // hwloc knows no NIC that is near to all CPUs
    for (const Device& device : machine.devices) keep.push_back(!device.anywhere);
    machine = subset(machine, keep);
    const std::string text = write_hwloc(machine);
    const auto again = read_hwloc(text);
    ASSERT_TRUE(again) << name << ": " << again.error().text();
    EXPECT_EQ(cells(*again), cells(machine)) << name;
    EXPECT_EQ(search(*again).rings.orders, search(machine).rings.orders) << name;
    EXPECT_EQ(again->gpus().size(), machine.gpus().size()) << name;
    for (std::size_t at = 0; at < machine.nics().size(); ++at)
      EXPECT_EQ((*again)[again->nics()[at]].name, machine[machine.nics()[at]].name);
  }
}

TEST(Written, NcclsFormatIsReadAgain) {
  for (const char* const name : {"switched-8.xml", "hwloc-4x6-divided.xml"}) {
    const Topology machine = recorded(name);
    const auto again = read_nccl(write_nccl(machine));
    ASSERT_TRUE(again) << name << ": " << again.error().text();
    EXPECT_EQ(cells(*again), cells(machine)) << name;
    EXPECT_EQ(search(*again).rings.orders, search(machine).rings.orders) << name;
  }
}

TEST(Written, IsComparedAsAValue) {
  const Topology machine = recorded("switched-8.xml");
  Topology other = recorded("switched-8.xml");
  EXPECT_EQ(machine, other);
  other.links.back().count = 1;
  EXPECT_NE(machine, other);
  EXPECT_EQ(with_gpus(machine, {2, 5}).gpus().size(), 2u);
  EXPECT_FALSE(tree_text(machine).empty());
}

TEST(Placement, LevelsOfSwitchesAndNodes) {
  const Topology machine = recorded("switched-8.xml");
  std::vector<RankLocation> locations;
  for (const int host : {0, 1})
    for (const int gpu : machine.gpus()) locations.push_back(location_at(host, machine, gpu));
  const auto levels = levels_of(locations);  // each GPU has a switch of its own, which is no level
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0], (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(levels[1], (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));

  Topology pairs;
  const int node = pairs.add({.kind = DeviceKind::numa, .name = "NUMA0", .index = 0, .numa = 0, .cpus = "0-7,16-23"});
  locations.clear();
  std::vector<int> devices;
  for (int gpu = 0; gpu < 4; ++gpu) {
    const int above = gpu % 2 == 0 ? pairs.add({.kind = DeviceKind::bridge, .name = "switch", .parent = node})
                                   : pairs[devices.back()].parent;
    devices.push_back(pairs.add(
        {.kind = DeviceKind::gpu, .name = "GPU" + std::to_string(gpu), .parent = above, .index = gpu, .numa = 0}));
  }
  for (const int device : devices) locations.push_back(location_at(0, pairs, device));
  EXPECT_EQ(levels_of(locations), (std::vector<std::vector<int>>{{0, 0, 1, 1}}));
  EXPECT_TRUE(levels_of({}).empty());

  EXPECT_EQ(cpus_near(pairs, devices[3]), "0-7,16-23");
  pairs.allowed_cpus = "0-2";
  EXPECT_EQ(cpus_near(pairs, devices[3]), "0-2");
  pairs.allowed_cpus = "40";  // another node's: better than none
  EXPECT_EQ(cpus_near(pairs, devices[0]), "40");
}

TEST(Placement, ChannelsAreThoseOfTheSearch) {
  const Topology machine = recorded("cube-mesh-double.txt");
  const std::vector<int> gpus = machine.gpus();
  const RankChannels all = channels_of(machine, gpus);
  EXPECT_EQ(all.orders.size(), 6u);
  EXPECT_EQ(all.gbps_each, 20);
  const std::vector<int> backwards{gpus[3], gpus[2], gpus[1], gpus[0]};
  const RankChannels four = channels_of(machine, backwards);
  EXPECT_EQ(four.orders.size(), 4u);
  for (const auto& order : four.orders) {
    std::vector<int> sorted = order;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, (std::vector<int>{0, 1, 2, 3}));
  }
  const std::vector<int> doubled{gpus[0], gpus[0], gpus[1], gpus[1]};
  for (const auto& order : channels_of(machine, doubled).orders) {
    ASSERT_EQ(order.size(), 4u);
    EXPECT_EQ(order[0] / 2, order[1] / 2) << "ranks of one GPU follow one another";
  }
  const std::vector<int> nodes = machine.of_kind(DeviceKind::numa);
  const std::vector<int> locations{nodes[0], nodes[1], nodes[0], nodes[1]};
  const RankChannels cpus = channels_of(machine, locations);
  ASSERT_EQ(cpus.orders.size(), 1u);
  EXPECT_EQ(cpus.orders[0], (std::vector<int>{0, 2, 1, 3}));
  EXPECT_GT(cpus.gbps_each, 0);
  EXPECT_TRUE(channels_of(machine, std::vector<int>{gpus[0]}).orders.empty());
}

TEST(Picture, IsXmlThatNamesEverything) {
  for (const char* const name : names) {
    Topology machine = recorded(name);
    if (!machine.nics().empty()) machine[machine.nics()[0]].name = "<odd & \"name\x01\xff>";
    const Search found = search(machine);
    const std::string text = picture(machine, found);
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(text.c_str())) << name;
    for (const int gpu : machine.gpus()) EXPECT_NE(text.find(">" + machine[gpu].name + "<"), std::string::npos);
    // One arrow's head for each hop of each ring that is drawn.
    std::size_t heads = 0;
    for (std::size_t at = text.find("<polygon"); at != std::string::npos; at = text.find("<polygon", at + 1)) ++heads;
    EXPECT_EQ(heads > 0, machine.gpus().size() > 1) << name;
    EXPECT_EQ(text.find("nan"), std::string::npos) << name;
  }
  const Topology mesh = with_gpus(recorded("cube-mesh-double.txt"), {0, 1, 2, 4});
  EXPECT_NE(picture(mesh, search(mesh)).find("tree of GPU"), std::string::npos) << "where no ring goes round";
}

TEST(Report, SaysWhatIsKnown) {
  Topology machine = recorded("switched-8.xml");
  machine[machine.gpus()[0]].fabric = "ab/7";
  machine.allowed_cpus = "0-3";
  const std::string text = json(machine, search(machine));
  EXPECT_NE(text.find("\"fabric\": \"ab/7\""), std::string::npos);
  EXPECT_NE(text.find("\"allowed_cpus\": \"0-3\""), std::string::npos);
}

TEST(Constants, SayWhereTheyAreFrom) {
  const auto value = [](const Topology& machine, std::string_view what) {
    for (const Constant& constant : constants(machine))
      if (constant.what == what) return std::pair(constant.value, constant.source);
    return std::pair(0.0, std::string());
  };
  const Topology switched = recorded("switched-8.xml");
  EXPECT_EQ(value(switched, "one NVLink"), std::pair(20.6, std::string("table (NCCL 2.30, sm_90)")));
  EXPECT_EQ(value(switched, "between the CPUs of two NUMA nodes"),
            std::pair(22.0, std::string("table (Intel, model 0x8f)")));
  EXPECT_EQ(value(switched, "PCI link of a GPU"), std::pair(48.0, std::string("said by file")));
  const Topology mesh = recorded("cube-mesh-double.txt");
  EXPECT_EQ(value(mesh, "between the CPUs of two NUMA nodes").second, "table (CPU not known)");
  EXPECT_TRUE(constants(Topology{}).empty());
  // Each once, and each in the text.
  const auto all = constants(switched);
  const std::string text = constants_text(all);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), all.size());
}

}  // namespace
}  // namespace tutti::topology
