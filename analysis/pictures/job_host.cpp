// What is in one host of a job's picture: packages, NUMA nodes, GPUs and NICs, and which ranks are where.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/pictures/job_picture.h"

namespace tutti::topology {
namespace {

constexpr double inset = 8, gap = 8, title_height = 18, chip_gap = 5, name_height = 14, arc_room = 13;
constexpr double row_width = 640, cell_padding = 4, nic_row = 15;
constexpr std::size_t chips_in_a_row = 8, chips_in_a_gpu = 4;

/// The machine of a host of which the locations of its ranks tell everything that is known.
Topology outline_of(const Job& job, int host) {
  Topology outline;
  std::map<int, int> packages, nodes;
  for (std::size_t rank = 0; rank < job.locations.size(); ++rank) {
    const RankLocation& location = job.locations[rank];
    if (location.host != host) continue;
    if (location.package >= 0 && !packages.contains(location.package))
      packages[location.package] = outline.add({.kind = DeviceKind::package, .index = location.package});
    if (location.numa >= 0 && !nodes.contains(location.numa))
      nodes[location.numa] = outline.add({.kind = DeviceKind::numa,
                                          .name = fmt::format("NUMA{}", location.numa),
                                          .parent = location.package >= 0 ? packages[location.package] : -1,
                                          .index = location.numa,
                                          .numa = location.numa});
  }
  return outline;
}

class HostPart {
 public:
  HostPart(const Job& job, int host, const JobStyle& style)
      : job_(job),
        machine_(job.machine_of(host) != nullptr ? *job.machine_of(host) : outline_of(job, host)),
        style_(style) {
    for (std::size_t rank = 0; rank < job.locations.size(); ++rank)
      if (job.locations[rank].host == host) place(static_cast<int>(rank));
    for (const int gpu : machine_.gpus()) held_[home_of(gpu)].gpus.push_back(gpu);
    for (const int nic : machine_.nics()) held_[home_of(nic)].nics.push_back(nic);
  }

  JobPart draw() {
    JobPart whole{.style = "host"};
    for (const int package : machine_.of_kind(DeviceKind::package)) add(whole, package_part(package));
    for (const int node : machine_.of_kind(DeviceKind::numa))
      if (machine_.above(node, DeviceKind::package) < 0) add(whole, node_part(node));
    fill(whole, -1);
    measure(whole, job_header);
    return whole;
  }

 private:
  struct Held {
    std::vector<int> gpus, nics, ranks;  // ranks: those without a GPU
  };

  static void add(JobPart& to, JobPart part) { to.parts.push_back(std::move(part)); }

  /// The NUMA node or package that holds a device; -1: the host.
  int home_of(int device) const {
    if (const int node = machine_.above(device, DeviceKind::numa); node >= 0) return node;
    for (const int node : machine_.of_kind(DeviceKind::numa))
      if (machine_[node].index == machine_[device].numa && !machine_[device].anywhere) return node;
    return machine_.above(device, DeviceKind::package);
  }

  void place(int rank) {
    const RankLocation& location = job_.locations[static_cast<std::size_t>(rank)];
    const std::string& name = job_.devices[static_cast<std::size_t>(rank)];
    for (const int gpu : machine_.gpus())
      if (machine_[gpu].name == name) return on_gpu_[gpu].push_back(rank);
    int home = -1;
    for (std::size_t id = 0; id < machine_.devices.size(); ++id) {
      const Device& device = machine_.devices[id];
      if (device.kind == DeviceKind::numa && device.index == location.numa) home = static_cast<int>(id);
      if (device.kind == DeviceKind::package && device.index == location.package && home < 0)
        home = static_cast<int>(id);
    }
    held_[home].ranks.push_back(rank);
  }

  JobPart package_part(int package) {
    std::vector<int> nodes;
    for (const int node : machine_.of_kind(DeviceKind::numa))
      if (machine_.above(node, DeviceKind::package) == package) nodes.push_back(node);
    const std::string title = fmt::format("package {}", std::max(machine_[package].index, 0));
    JobPart part{.title = title, .style = "package"};
    if (nodes.size() == 1 && !held_.contains(package)) {  // one box says as much as two
      part.title += " · " + shortened(machine_[nodes[0]].name, 8);
      fill(part, nodes[0]);
    } else {
      for (const int node : nodes) add(part, node_part(node));
      fill(part, package);
    }
    measure(part, title_height);
    return part;
  }

  JobPart node_part(int node) {
    JobPart part{.title = shortened(machine_[node].name, 12), .style = "numa"};
    fill(part, node);
    measure(part, title_height);
    return part;
  }

  JobCell gpu_cell(int gpu) const {
    const auto ranks = on_gpu_.find(gpu);
    JobCell cell{.name = shortened(machine_[gpu].name, 8)};
    if (ranks != on_gpu_.end()) cell.ranks = ranks->second;
    return cell;
  }

  /// The cells of a node. Where ranks that share a cache or a switch are a level, each such group is a part.
  void fill(JobPart& part, int home) {
    Held& held = held_[home];
    std::map<std::pair<int, int>, JobPart> groups;
    const auto key_of = [&](int rank) {
      const RankLocation& location = job_.locations[static_cast<std::size_t>(rank)];
      return std::pair(style_.caches ? location.cache : -1, style_.switches ? location.pci_switch : -1);
    };
    for (const int gpu : held.gpus) {
      const JobCell cell = gpu_cell(gpu);
      groups[cell.ranks.empty() ? std::pair(-1, -1) : key_of(cell.ranks.front())].cells.push_back(cell);
    }
    for (const int rank : held.ranks) {
      std::vector<JobCell>& cells = groups[key_of(rank)].cells;
      if (cells.empty() || !cells.back().name.empty()) cells.push_back({});
      cells.back().ranks.push_back(rank);
    }
    for (auto& [key, group] : groups) {
      if (groups.size() == 1 || key == std::pair(-1, -1)) {
        part.cells.insert(part.cells.end(), group.cells.begin(), group.cells.end());
        continue;
      }
      group.style = "shared";
      group.title = key.second >= 0 ? "switch" : fmt::format("cache {}", key.first);
      measure(group, title_height - 3);
      add(part, std::move(group));
    }
    for (const int nic : held.nics) part.nics.push_back(machine_[nic].name);
  }

  void measure_cell(JobCell& cell) const {
    const std::size_t most = cell.name.empty() ? chips_in_a_row : chips_in_a_gpu;
    const auto count = std::max<std::size_t>(cell.ranks.size(), 1), columns = std::min(count, most);
    const auto rows = static_cast<double>((count + most - 1) / most);
    const double top = cell.name.empty() ? 4 : name_height + 2, step = style_.chip_width + chip_gap;
    const double taken = static_cast<double>(columns) * step - chip_gap;
    cell.box.width = std::max(taken, text_width(cell.name, 10)) + 2 * cell_padding;
    cell.box.height = top + rows * (chip_height + arc_room);
    for (std::size_t i = 0; i < cell.ranks.size(); ++i)
      cell.chips.push_back({(cell.box.width - taken) / 2 + static_cast<double>(i % columns) * step,
                            top + static_cast<double>(i / columns) * (chip_height + arc_room), style_.chip_width,
                            chip_height});
  }

  /// Places parts, then cells, then NICs from the top of the part downwards, each in rows.
  void measure(JobPart& part, double top) const {
    double right = std::max(part.style == "host" ? 150.0 : 0.0, text_width(part.title, 10.5));
    Point at{inset, top};
    double tallest = 0;
    const auto flow = [&](Box& box, double space) {
      if (at.x > inset && at.x + box.width > row_width) at = {inset, at.y + tallest + space}, tallest = 0;
      box.x = at.x, box.y = at.y;
      at.x += box.width + space;
      tallest = std::max(tallest, box.height);
      right = std::max(right, at.x - space - inset);
    };
    const auto next_row = [&] {
      if (tallest > 0) at = {inset, at.y + tallest + gap}, tallest = 0;
    };
    for (JobPart& inner : part.parts) flow(inner.box, gap);
    next_row();
    for (JobCell& cell : part.cells) {
      measure_cell(cell);
      flow(cell.box, gap - 2);
    }
    next_row();
    if (!part.nics.empty()) {
      part.nic_corner = {inset, at.y - (part.cells.empty() ? 0 : 3)};
      at.y += nic_row + (part.cells.empty() ? 4 : 1);
      const double said = text_width(part.nics.size() == 1 ? part.nics[0] : "99 NICs", 9.5);
      right = std::max(right, 12.0 * static_cast<double>(part.nics.size()) + 6 + said);
    }
    part.box.width = right + 2 * inset;
    part.box.height = std::max(at.y, top + 10);
  }

  const Job& job_;
  const Topology machine_;
  const JobStyle style_;
  std::map<int, Held> held_;                // by NUMA node or package; -1: by the host itself
  std::map<int, std::vector<int>> on_gpu_;  // ranks
};

}  // namespace

JobPart host_part(const Job& job, int host, const JobStyle& style) {
  return HostPart(job, host, style).draw();
}

}  // namespace tutti::topology
