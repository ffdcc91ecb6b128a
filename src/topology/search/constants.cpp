#include "topology/search/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "topology/graph/rates.h"

namespace tutti::topology {
namespace {

std::string_view name(CpuMaker maker) {
  constexpr std::string_view names[] = {"", "Intel", "AMD", "Arm", "POWER", "Zhaoxin"};
  return names[static_cast<int>(maker)];
}

std::string_view one_link(LinkKind kind) {
  constexpr std::string_view names[] = {"one NVLink", "one xGMI link", "one link to the memory of a CPU"};
  return names[static_cast<int>(kind)];
}

/// The row of rates.h that applies.
std::string table(const Device& cpus) {
  if (cpus.maker == CpuMaker::unknown) return "table (CPU not known)";
  return fmt::format("table ({}, model {:#x})", name(cpus.maker), cpus.model);
}

void add_once(std::vector<Constant>& all, Constant constant) {
  if (std::ranges::find(all, constant) == all.end()) all.push_back(std::move(constant));
}

void add_links(const Topology& topology, std::vector<Constant>& all) {
  for (const Link& link : topology.links) {
    const Device& from = topology[link.from];
    const bool amd = link.kind == LinkKind::xgmi;
    std::string of = from.compute > 0 ? fmt::format(", {}{}", amd ? "gfx" : "sm_", from.compute) : "";
    add_once(all, {.what = std::string(one_link(link.kind)),
                   .value = link.gbps,
                   .source = fmt::format("table ({}{})", amd ? "RCCL" : "NCCL 2.30", of)});
  }
}

/// A link to the bus without a known rate limits no path.
void add_bus(const Topology& topology, std::vector<Constant>& all) {
  for (const Device& device : topology.devices) {
    if (device.gbps > 0 && (device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic))
      add_once(all, {.what = fmt::format("PCI link of a {}", device.kind == DeviceKind::gpu ? "GPU" : "NIC"),
                     .value = device.gbps,
                     .source = "said by " + device.source});
    if (device.kind != DeviceKind::nic) continue;
    const bool said = device.network_gbps > 0;
    add_once(all, {.what = "wire of a NIC",
                   .value = said ? device.network_gbps : rates::network,
                   .source = said ? "said by " + device.source : "table (it does not say)"});
  }
}

}  // namespace

std::vector<Constant> constants(const Topology& topology) {
  std::vector<Constant> all;
  const std::vector<int> nodes = topology.of_kind(DeviceKind::numa);
  for (const int node : nodes) {
    const Device& cpus = topology[node];
    if (nodes.size() < 2) break;  // no path leaves it
    add_once(all, {.what = "between the CPUs of two NUMA nodes",
                   .value = rates::cpu(cpus.maker, cpus.model),
                   .source = table(cpus)});
  }
  add_links(topology, all);
  add_bus(topology, all);
  return all;
}

std::string constants_text(std::span<const Constant> constants) {
  std::size_t widest = 0;
  for (const Constant& constant : constants) widest = std::max(widest, constant.what.size());
  std::string text;
  for (const Constant& constant : constants)
    text += fmt::format("  {:<{}} {:>9.4g} {:<5} {}\n", constant.what, widest, constant.value, constant.unit,
                        constant.source);
  return text;
}

}  // namespace tutti::topology
