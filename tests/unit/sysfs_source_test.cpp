// Machines of which only files below a folder say what they are.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/forbidden_calls.h"
#include "topology/graph/path.h"
#include "topology/search/warnings.h"
#include "topology/sources/detect.h"
#include "topology/sources/rdma_ports.h"

namespace tutti::topology {
namespace {

namespace fs = std::filesystem;

/// What is said of every copy of /sys with a GPU of NVIDIA.
constexpr const char* no_driver = "NVML cannot be asked about a copy of /sys: NVLinks are not known";

/// A folder with a /sys and a /proc of its own.
class Sysfs : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }
  void node(int number, const std::string& mask, int package) const {
    const std::string name = "node" + std::to_string(number);
    file("sys/devices/system/node/" + name + "/cpumap", mask);
    for (const int cpu : {0, 16})
      file("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/physical_package_id",
           std::to_string(cpu / 16 * package));
  }
  /// A function below `above`, a path of addresses under a root like "pci0000:16"; what it is follows from its class.
  std::string function(const std::string& above, const std::string& bus_id, const std::string& pci_class,
                       const std::string& vendor, int numa, const std::string& speed = "32.0 GT/s PCIe",
                       int width = 16) const {
    const std::string folder = "sys/devices/" + above + "/" + bus_id;
    file(folder + "/class", pci_class);
    file(folder + "/vendor", vendor);
    file(folder + "/device", "0x2330");
    file(folder + "/numa_node", std::to_string(numa));
    for (const char* const which : {"max", "current"}) {
      file(folder + "/" + which + "_link_speed", speed);
      file(folder + "/" + which + "_link_width", std::to_string(width));
    }
    link("sys/bus/pci/devices/" + bus_id, "../../../devices/" + above + "/" + bus_id);
    return folder;
  }
  std::string gpu(const std::string& above, const std::string& bus_id, int numa) const {
    return function(above, bus_id, "0x030200", "0x10de", numa);
  }
  std::string nic(const std::string& above, const std::string& bus_id, int numa, const std::string& name) const {
    std::string folder = function(above, bus_id, "0x020700", "0x15b3", numa);
    file(folder + "/infiniband/" + name + "/ports/1/rate", "400 Gb/sec (4X NDR)");
    file(folder + "/net/ib" + name + "/speed", "1000");
    return folder;
  }
  Topology found() const {
    auto machine = detect({.root = root_.string(), .nvml = false});
    EXPECT_TRUE(machine);
    return machine ? *std::move(machine) : Topology{};
  }
  static std::string cells(const Topology& machine, int row) {
    std::string text;
    const std::vector<int> devices = matrix_devices(machine);
    for (const int to : devices) text += cell(machine, devices[static_cast<std::size_t>(row)], to) + " ";
    return text;
  }

  Folder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(Sysfs, NothingAtAll) {
  const Topology machine = found();
  ASSERT_EQ(machine.devices.size(), 1u);
  EXPECT_EQ(machine.devices[0].kind, DeviceKind::numa);
  ASSERT_EQ(warnings(machine).size(), 1u) << ::testing::PrintToString(warnings(machine));
  EXPECT_NE(warnings(machine)[0].find("/sys is not there"), std::string::npos);
}

TEST_F(Sysfs, ContainerWithPartOfIt) {
  file("sys/devices/system/cpu/online", "0-7");
  link("sys/bus/pci/devices/0000:17:00.0", "../../../devices/pci0000:16/0000:17:00.0");  // masked
  const Topology machine = found();
  ASSERT_EQ(machine.of_kind(DeviceKind::numa).size(), 1u);
  EXPECT_EQ(machine[machine.of_kind(DeviceKind::numa)[0]].cpus, "0-7");
  ASSERT_EQ(warnings(machine).size(), 1u) << ::testing::PrintToString(warnings(machine));
  EXPECT_NE(warnings(machine)[0].find("1 entries of"), std::string::npos);
}

TEST_F(Sysfs, WithoutPci) {
  node(0, "000000ff", 0);
  const Topology machine = found();
  EXPECT_EQ(machine.of_kind(DeviceKind::numa).size(), 1u);
  ASSERT_EQ(warnings(machine).size(), 1u);
  EXPECT_NE(warnings(machine)[0].find("/bus/pci cannot be read"), std::string::npos);
}

TEST_F(Sysfs, VirtualMachine) {
  node(0, "f", 0);
  const std::string folder = function("pci0000:00", "0000:00:03.0", "0x020000", "0x1af4", -1, "Unknown", 0);
  file(folder + "/virtio0/net/eth0/speed", "10000");
  gpu("pci0001:00", "0001:00:00.0", -1);
  function("pci0000:00", "0000:00:02.0", "0x030000", "0x1234", -1);  // a screen that QEMU makes up
  const Topology machine = found();
  ASSERT_EQ(machine.gpus().size(), 1u);
  ASSERT_EQ(machine.nics().size(), 1u);
  const Device& nic = machine[machine.nics()[0]];
  EXPECT_EQ(nic.name, "eth0");
  EXPECT_EQ(nic.numa, 0) << "there is only one node";
  EXPECT_DOUBLE_EQ(nic.network_gbps, 1.25);
  EXPECT_EQ(nic.gbps, 0) << "a link of unknown speed";
  EXPECT_EQ(cells(machine, 0), "X NODE ");
  EXPECT_FALSE(machine.nvlink_known);
}

TEST_F(Sysfs, TwoSocketsWithSwitches) {
  node(0, "0000ffff", 1);
  node(1, "ffff0000", 1);
  node(2, "00000000", 1);  // memory of a GPU
  const std::string one = "pci0000:16/0000:16:02.0/0000:17:00.0";
  function("pci0000:16", "0000:16:02.0", "0x060400", "0x8086", 0);
  function("pci0000:16/0000:16:02.0", "0000:17:00.0", "0x060400", "0x1000", 0);
  for (const int port : {0, 1, 2}) function(one, "0000:18:0" + std::to_string(port) + ".0", "0x060400", "0x1000", 0);
  gpu(one + "/0000:18:00.0", "0000:19:00.0", 0);
  gpu(one + "/0000:18:01.0", "0000:1a:00.0", 0);
  nic(one + "/0000:18:02.0", "0000:1b:00.0", 0, "mlx5_0");
  gpu("pci0000:30/0000:30:01.0", "0000:31:00.0", 0);
  gpu("pci0000:80/0000:80:01.0", "0000:81:00.0", 1);
  file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: any");
  const Topology machine = found();
  EXPECT_EQ(machine.of_kind(DeviceKind::package).size(), 2u);
  EXPECT_EQ(machine.of_kind(DeviceKind::numa).size(), 2u);
  ASSERT_EQ(machine.gpus().size(), 4u);
  EXPECT_EQ(cells(machine, 0), "X PIX NODE SYS PIX ");
  EXPECT_EQ(cells(machine, 2), "NODE NODE X SYS NODE ");
  const Device& nic = machine[machine.nics().at(0)];
  EXPECT_EQ(nic.name, "mlx5_0") << "verbs before net";
  EXPECT_DOUBLE_EQ(nic.network_gbps, 50);
  EXPECT_DOUBLE_EQ(cpu_gbps(machine), 22);
  EXPECT_EQ(warnings(machine), std::vector<std::string>{no_driver}) << ::testing::PrintToString(warnings(machine));
}

TEST_F(Sysfs, DevicesNearMemoryAloneAreNearTheNodeNextToIt) {
  node(0, "0000ffff", 0);
  node(1, "ffff0000", 1);
  node(2, "00000000", 0);  // CXL
  file("sys/devices/system/node/node2/distance", "24 14 10");
  gpu("pci0000:00", "0000:01:00.0", 2);
  gpu("pci0000:80", "0000:81:00.0", 0);
  const Topology machine = found();
  EXPECT_EQ(machine.of_kind(DeviceKind::numa).size(), 2u);
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(machine[gpus[0]].numa, 1);
  EXPECT_EQ(machine.above(gpus[0], DeviceKind::numa), machine.of_kind(DeviceKind::numa)[1]);
  EXPECT_EQ(cells(machine, 0), "X SYS ");
}

TEST_F(Sysfs, LinksOfAmdsGpusAreNotKnownEither) {
  node(0, "f", 0);
  function("pci0000:00", "0000:01:00.0", "0x038000", "0x1002", 0);
  const Topology machine = found();
  ASSERT_EQ(machine.gpus().size(), 1u);
  EXPECT_FALSE(machine.nvlink_known);
  EXPECT_EQ(warnings(machine),
            std::vector<std::string>{"/sys does not say which xGMI links there are: they are not known"});
}

TEST_F(Sysfs, NarrowLinksAndSlowPorts) {
  node(0, "f", 0);
  const std::string narrow = gpu("pci0000:00", "0000:01:00.0", 0);
  file(narrow + "/current_link_width", "4");
  function("pci0000:00", "0000:00:05.0", "0x060400", "0x8086", 0, "16.0 GT/s PCIe", 8);
  gpu("pci0000:00/0000:00:05.0", "0000:02:00.0", 0);
  const std::string idle = gpu("pci0000:00", "0000:03:00.0", 0);
  file(idle + "/current_link_speed", "2.5 GT/s PCIe");  // to save power
  const Topology machine = found();
  const std::vector<int> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_DOUBLE_EQ(machine[gpus[0]].gbps, 12);
  EXPECT_DOUBLE_EQ(machine[gpus[1]].gbps, 12) << "the slower end of a link counts";
  EXPECT_DOUBLE_EQ(machine[gpus[2]].gbps, 48);
  const std::vector<std::string> lines = warnings(machine);
  ASSERT_EQ(lines.size(), 2u) << ::testing::PrintToString(lines);
  EXPECT_EQ(lines[1], no_driver);
  EXPECT_EQ(lines[0], "GPU0: its PCI link gives 12 GB/s and is made for 48");
}

TEST_F(Sysfs, VirtualFunctionsAreForVirtualMachines) {
  node(0, "f", 0);
  gpu("pci0000:00", "0000:41:00.0", 0);
  nic("pci0000:00", "0000:51:00.0", 0, "mlx5_0");
  for (const int number : {4, 5, 6}) {
    link(gpu("pci0000:00", "0000:41:00." + std::to_string(number), 0) + "/physfn", "../0000:41:00.0");
    const std::string bus_id = "0000:51:00." + std::to_string(number);
    const std::string folder =
        number == 4 ? nic("pci0000:00", bus_id, 0, "mlx5_4") : function("pci0000:00", bus_id, "0x020700", "0x15b3", 0);
    link(folder + "/physfn", "../0000:51:00.0");
  }
  const Topology machine = found();
  EXPECT_EQ(machine.gpus().size(), 1u);
  ASSERT_EQ(machine.nics().size(), 2u) << "that which the system drives, and no other";
  EXPECT_EQ(machine[machine.nics()[1]].name, "mlx5_4");
}

TEST_F(Sysfs, IsolationIsSaid) {
  node(0, "f", 0);
  const std::string above = "pci0000:00/0000:00:01.0/0000:01:00.0";
  for (const int gpu_number : {0, 1}) {
    const std::string port = "0000:02:0" + std::to_string(gpu_number) + ".0";
    const std::string folder = gpu(above + "/" + port, "0000:0" + std::to_string(3 + gpu_number) + ":00.0", 0);
    const std::string group = "sys/kernel/iommu_groups/" + std::to_string(20 + gpu_number);
    file(group + "/type", gpu_number == 0 ? "DMA-FQ" : "identity");
    fs::create_symlink(root_ / group, root_ / folder / "iommu_group");
  }
  const std::vector<std::string> lines = warnings(found());
  ASSERT_EQ(lines.size(), 3u) << ::testing::PrintToString(lines);
  EXPECT_EQ(lines[2], no_driver);
  EXPECT_EQ(lines[0],
            "the 2 GPUs below switch 0000:01:00.0 are in 2 IOMMU groups: ACS sends their P2P through the root");
  EXPECT_EQ(lines[1], "the IOMMU translates addresses of GPU0: P2P over PCI may be blocked or slow");
}

TEST_F(Sysfs, LimitsOfTheProcess) {
  node(0, "000000ff", 0);
  node(1, "0000ff00", 1);
  fs::create_directories(root_ / "sys/bus/pci/devices");
  file("proc/self/status", "Name:\tcat\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15\nMems_allowed:\t3");
  EXPECT_TRUE(found().notes.empty());
  file("proc/self/status", "Cpus_allowed_list:\t4-11,64");
  Topology machine = found();
  EXPECT_EQ(machine.allowed_cpus, "4-11");
  ASSERT_EQ(machine.notes.size(), 1u);
  EXPECT_EQ(machine.notes[0], "this process may run only on CPUs 4-11 of 0-15");
  EXPECT_EQ(machine.of_kind(DeviceKind::numa).size(), 2u);
  file("proc/self/cgroup", "0::/jobs/7");
  file("sys/fs/cgroup/jobs/7/cpu.max", "250000 100000");
  machine = found();
  ASSERT_EQ(machine.notes.size(), 2u);
  EXPECT_EQ(machine.notes[1], "the control group of this process gives it the time of 2.5 of 8 CPUs");
  file("sys/fs/cgroup/jobs/7/cpu.max", "max 100000");
  EXPECT_EQ(found().notes.size(), 1u);
}

TEST(Detect, ThisMachineIsUsable) {
  const auto machine = detect({});
  ASSERT_TRUE(machine);
  EXPECT_FALSE(machine->of_kind(DeviceKind::numa).empty());
  EXPECT_EQ(machine->origin, "live");
}

TEST_F(Sysfs, RdmaPortsHaveStateRateAndTheGidsThatAreSet) {
  const std::string port = "sys/class/infiniband/mlx5_1/ports/1";
  file(port + "/state", "4: ACTIVE");
  file(port + "/rate", "100 Gb/sec (4X EDR)");
  file(port + "/link_layer", "Ethernet");
  file(port + "/gids/0", "fe80:0000:0000:0000:5054:00ff:fe77:0001");
  file(port + "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000");
  file(port + "/gids/10", "0000:0000:0000:0000:0000:ffff:0a4d:0001");
  file(port + "/gid_attrs/types/0", "IB/RoCE v1");
  file(port + "/gid_attrs/types/10", "RoCE v2");
  file("sys/class/infiniband/mlx5_1/ports/2/state", "1: DOWN");
  const auto ports = rdma_ports(root_.string());
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].device, "mlx5_1");
  EXPECT_EQ(ports[0].number, 1);
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].rate, "100 Gb/sec (4X EDR)");
  EXPECT_EQ(ports[0].link_layer, "Ethernet");
  const std::vector<RdmaPort::Gid> gids = {{0, "fe80:0000:0000:0000:5054:00ff:fe77:0001", "IB/RoCE v1"},
                                           {10, "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2"}};
  EXPECT_EQ(ports[0].gids, gids);
  EXPECT_EQ(ports[1].number, 2);
  EXPECT_EQ(ports[1].state, "DOWN");
  EXPECT_TRUE(ports[1].gids.empty());
  EXPECT_TRUE(rdma_ports(root_.string() + "/none").empty());
}

/// libhwloc would ask for this process's CPUs for ever. A fresh program, as libhwloc remembers their number.
TEST(Detect, EndsWhereAFilterForbidsToAskForCpus) {
  for (const unsigned refusal : {EPERM, ENOSYS, EINVAL}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(100);  // distant; ends what never ends
      if (!testing::forbid_calls({SYS_sched_getaffinity}, refusal)) ::_exit(77);
      ::execl("/proc/self/exe", "test", "--gtest_filter=Detect.ThisMachineIsUsable", nullptr);
      ::_exit(78);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << "errno " << refusal;
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "errno " << refusal;
  }
}

}  // namespace
}  // namespace tutti::topology
