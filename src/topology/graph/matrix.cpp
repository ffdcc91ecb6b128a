// The matrix of paths in nvidia-smi's format.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "topology/graph/path.h"

namespace tutti::topology {

std::string cell(const Topology& topology, int from, int to) {
  if (from == to) return "X";
  if (topology[from].kind == DeviceKind::gpu && topology[to].kind == DeviceKind::gpu)
    if (const int links = topology.nvlinks(from, to); links > 0) return fmt::format("NV{}", links);
  return std::string(name(pci_path(topology, from, to).kind));
}

std::vector<int> matrix_devices(const Topology& topology) {
  std::vector<int> devices = topology.gpus();
  std::ranges::copy(topology.nics(), std::back_inserter(devices));
  return devices;
}

std::string matrix_text(const Topology& topology) {
  const std::vector<int> devices = matrix_devices(topology);
  const std::vector<int> nics = topology.nics();
  std::vector<std::string> heads;
  for (const int id : devices) {
    const auto nic = std::ranges::find(nics, id);
    heads.push_back(nic == nics.end() ? topology[id].name : fmt::format("NIC{}", nic - nics.begin()));
  }
  std::string text = fmt::format("{:8}", "");
  for (const std::string& head : heads) text += fmt::format("{:7} ", head);
  text += "CPU Affinity     NUMA Affinity\n";
  for (std::size_t row = 0; row < devices.size(); ++row) {
    text += fmt::format("{:8}", heads[row]);
    for (const int to : devices) {
      const std::string kind = cell(topology, devices[row], to);
      text += fmt::format("{:7} ", kind == "X" ? " X" : kind);
    }
    const Device& device = topology[devices[row]];
    if (device.kind == DeviceKind::gpu) {
      const int home = topology.above(devices[row], DeviceKind::numa);
      const std::string cpus = !device.cpus.empty() ? device.cpus : home >= 0 ? topology[home].cpus : "";
      text += fmt::format("{:16} {}", cpus, device.numa < 0 ? "N/A" : std::to_string(device.numa));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text +=
      "\nLegend:\n\n"
      "  X    = Self\n"
      "  SYS  = through the CPUs of different NUMA nodes\n"
      "  NODE = through several PCIe host bridges of one NUMA node\n"
      "  PHB  = through a PCIe host bridge (the CPU)\n"
      "  PXB  = through several PCIe switches, and no host bridge\n"
      "  PIX  = through at most one PCIe switch\n"
      "  NV#  = over # bonded NVLink or xGMI links\n";
  if (!nics.empty()) text += "\nNIC Legend:\n\n";
  for (std::size_t at = 0; at < nics.size(); ++at) text += fmt::format("  NIC{}: {}\n", at, topology[nics[at]].name);
  return text;
}

}  // namespace tutti::topology
