// Draws the tree of the machine as nested boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/pictures/picture.h"
#include "topology/graph/cpus.h"
#include "topology/graph/path.h"

namespace tutti::topology {
namespace {

constexpr double leaf_width = 128, leaf_height = 38, gap = 10, header = 20, rail = 14, title = 24, inset = 12;
constexpr double cpu_square = 6, cpu_step = 8;
constexpr std::size_t leaves_in_a_column = 6;
constexpr int cpus_shown_max = 512;

bool is_container(const Device& device) {
  return device.kind == DeviceKind::package || device.kind == DeviceKind::numa;
}

bool is_group(const Device& device) {
  return device.kind == DeviceKind::bridge || device.kind == DeviceKind::host_bridge;
}

double stroke(double gbps) {
  return gbps > 0 ? std::clamp(gbps / 8, 1.2, 9.0) : 1;
}

/// A device, the parts inside it, and its position inside its own container.
struct Part {
  int device = -1;
  Box box = {};
  std::vector<Part> inside = {};  // containers first, then groups and leaves
  double bar = 0;                 // containers: position of the line that groups and leaves hang from
  int cpu_columns = 0;
};

class Drawing {
 public:
  Drawing(Canvas& canvas, const Topology& topology, double width)
      : canvas_(canvas),
        topology_(topology),
        width_(width),
        children_(topology.devices.size()),
        wanted_(topology.devices.size()) {
    for (std::size_t id = 0; id < children_.size(); ++id)
      if (!is_group(topology.devices[id]))
        for (int up = static_cast<int>(id); up >= 0 && shown(static_cast<int>(id)); up = topology[up].parent)
          wanted_[static_cast<std::size_t>(up)] = true;
    for (std::size_t id = 0; id < children_.size(); ++id)
      if (const int parent = topology.devices[id].parent; parent >= 0 && wanted_[id])
        children_[static_cast<std::size_t>(parent)].push_back(static_cast<int>(id));
  }

  Box draw(Point corner);

 private:
  bool shown(int id) const { return topology_[id].kind != DeviceKind::nvswitch; }
  Part measured(int id);
  void measure_group(Part& group);
  void measure_container(Part& container, double width);
  void flow(const std::vector<Part*>& parts, Box& room, double width, double space) const;
  void paint(const Part& part, Point at);
  void paint_group(const Part& group, Point at);
  void paint_container(const Part& container, Point at);
  void paint_leaf(const Part& leaf, Point at);
  void link(Point from, Point to, double gbps);
  std::string label(const Device& device) const;
  double rate(int id) const { return uplink_gbps(topology_, id); }

  Canvas& canvas_;
  const Topology& topology_;
  double width_;
  std::vector<std::vector<int>> children_;
  std::vector<bool> wanted_;  // all but NVSwitches and devices with nothing below them
};

/// Places the parts from left to right, in several rows if they are wider than `width`. `room` grows to hold them.
void Drawing::flow(const std::vector<Part*>& parts, Box& room, double width, double space) const {
  double x = room.x, y = room.y, tallest = 0;
  for (Part* part : parts) {
    if (x > room.x && x + part->box.width > room.x + width) x = room.x, y += tallest + space, tallest = 0;
    part->box.x = x;
    part->box.y = y;
    x += part->box.width + space;
    tallest = std::max(tallest, part->box.height);
    room.width = std::max(room.width, x - space - room.x);
    room.height = y + tallest - room.y;
  }
}

Part Drawing::measured(int id) {
  // A root complex with one port is not drawn.
  while (topology_[id].kind == DeviceKind::host_bridge && children_[static_cast<std::size_t>(id)].size() == 1)
    id = children_[static_cast<std::size_t>(id)].front();
  Part part{.device = id, .box = {0, 0, leaf_width, leaf_height}};
  const Device& device = topology_[id];
  if (!is_container(device) && !is_group(device)) return part;
  for (const int child : children_[static_cast<std::size_t>(id)]) part.inside.push_back(measured(child));
  std::stable_partition(part.inside.begin(), part.inside.end(),
                        [&](const Part& p) { return is_container(topology_[p.device]); });
  if (is_group(device))
    measure_group(part);
  else
    measure_container(part, device.kind == DeviceKind::numa ? width_ * 0.48 : width_ * 0.98);
  return part;
}

void Drawing::measure_group(Part& group) {
  std::vector<Part*> groups;
  std::size_t leaves = 0;
  double bottom = header + gap;
  for (Part& part : group.inside) {
    if (is_group(topology_[part.device])) {
      groups.push_back(&part);
      continue;
    }
    const auto columns_before = leaves / leaves_in_a_column;
    const auto column = static_cast<double>(columns_before);
    const auto row = static_cast<double>(leaves++ % leaves_in_a_column);
    part.box.x = rail + column * (rail + leaf_width);
    part.box.y = header + gap + row * (leaf_height + gap);
    bottom = std::max(bottom, part.box.y + leaf_height);
  }
  const auto columns = (leaves + leaves_in_a_column - 1) / leaves_in_a_column;
  const double taken = static_cast<double>(columns) * (rail + leaf_width);
  Box room{taken > 0 ? taken + gap : 0, header + 2 * gap, 0, 0};
  flow(groups, room, width_, gap);
  group.box.width = std::max({taken, groups.empty() ? 0 : room.x + room.width, leaf_width + rail});
  group.box.height = std::max(leaves > 0 ? bottom : header, groups.empty() ? 0 : room.y + room.height);
}

void Drawing::measure_container(Part& container, double width) {
  const Device& device = topology_[container.device];
  std::vector<Part*> containers, others;
  for (Part& part : container.inside) (is_container(topology_[part.device]) ? containers : others).push_back(&part);
  double bottom = title, right = std::max(150.0, text_width(label(device), 12));
  Box room{inset, title + 4, 0, 0};
  flow(containers, room, width - 2 * inset, gap);
  if (!containers.empty()) bottom = room.y + room.height, right = std::max(right, room.width);
  // The devices below are measured first: the CPUs then fill the same width.
  Box hanging{inset, 0, 0, 0};
  flow(others, hanging, width - 2 * inset, 1.4 * gap);
  right = std::max(right, hanging.width);
  const int cpus = containers.empty() ? static_cast<int>(cpus_of_list(device.cpus).size()) : 0;
  if (cpus > 0 && cpus <= cpus_shown_max) {
    right = std::max(right, std::min(cpus, 32) * cpu_step);
    const int rows = static_cast<int>(std::ceil(cpus * cpu_step / right));
    container.cpu_columns = (cpus + rows - 1) / rows;
    const int lines = (cpus + container.cpu_columns - 1) / container.cpu_columns;
    bottom += 4 + lines * cpu_step;
  }
  if (!others.empty()) {
    container.bar = bottom + 6;
    for (Part* part : others) part->box.y += container.bar + 2 * gap;
    bottom = container.bar + 2 * gap + hanging.height;
  }
  container.box.width = right + 2 * inset;
  container.box.height = bottom + inset;
}

std::string Drawing::label(const Device& device) const {
  if (device.kind == DeviceKind::package) return "CPU package " + std::to_string(std::max(device.index, 0));
  if (device.kind == DeviceKind::numa)
    return shortened(fmt::format("{} {}", device.name, device.cpus.empty() ? "" : "· CPUs " + device.cpus), 46);
  if (device.kind == DeviceKind::bridge) return "switch " + shortened(device.name, 14);
  return shortened(device.name, 22);
}

void Drawing::link(Point from, Point to, double gbps) {
  canvas_.line(from, to, stroke(gbps), gbps > 0 ? "pci" : "pci unknown");
}

void Drawing::paint_leaf(const Part& leaf, Point at) {
  const Device& device = topology_[leaf.device];
  const Box box{at.x, at.y, leaf.box.width, leaf.box.height};
  const bool gpu = device.kind == DeviceKind::gpu;
  canvas_.begin(fmt::format("{} {}", device.name, device.bus_id));
  canvas_.rectangle(box, 6, gpu ? "gpu" : device.kind == DeviceKind::nic ? "nic" : "function");
  std::string said = device.gbps > 0 ? fmt::format("{:.3g} GB/s", device.gbps) : std::string();
  if (device.kind == DeviceKind::nic && device.network_gbps > 0)
    said = fmt::format("wire {:.3g} GB/s", device.network_gbps);
  if (said.empty()) said = device.bus_id;
  canvas_.text({at.x + 9, at.y + (said.empty() ? 23 : 16)}, shortened(device.name, 15), gpu ? "name" : "name plain");
  canvas_.text({at.x + 9, at.y + 30}, said, "small");
  if (gpu && device.compute > 0) {
    const std::string what = device.compute > 200
                                 ? "gfx" + (device.compute == 910 ? "90a" : std::to_string(device.compute))
                                 : fmt::format("sm_{}", device.compute);
    canvas_.text({at.x + box.width - 8, at.y + 16}, what, "small", "end");
  }
  canvas_.end();
}

void Drawing::paint_group(const Part& group, Point at) {
  const Device& device = topology_[group.device];
  for (const Part& part : group.inside) {
    const Point there{at.x + part.box.x, at.y + part.box.y};
    const double gbps = rate(part.device);
    if (is_group(topology_[part.device])) {
      const double x = std::min(there.x + 30, at.x + group.box.width - 8);
      link({x, at.y + header}, {x, there.y}, gbps);
    } else {
      const double x = there.x - rail / 2, y = there.y + leaf_height / 2;
      link({x, y}, {there.x, y}, gbps);
      link({x, at.y + header}, {x, y + stroke(gbps) / 2}, gbps);
    }
    paint(part, there);
  }
  canvas_.begin(fmt::format("{} {}", label(device), device.gbps > 0 ? fmt::format("{:.4g} GB/s", device.gbps) : ""));
  canvas_.rectangle({at.x, at.y, group.box.width, header}, 5, device.kind == DeviceKind::bridge ? "switch" : "root");
  canvas_.text({at.x + 8, at.y + 14}, label(device), "switch-name");
  canvas_.end();
}

void Drawing::paint_container(const Part& container, Point at) {
  const Device& device = topology_[container.device];
  const Box box{at.x, at.y, container.box.width, container.box.height};
  canvas_.rectangle(box, 10, device.kind == DeviceKind::package ? "package" : "numa");
  canvas_.text({at.x + inset, at.y + 17}, label(device), "title");
  if (container.cpu_columns > 0) {
    const int cpus = static_cast<int>(cpus_of_list(device.cpus).size());
    for (int cpu = 0; cpu < cpus; ++cpu) {
      const int column = cpu % container.cpu_columns, line = cpu / container.cpu_columns;
      canvas_.rectangle({at.x + inset + column * cpu_step, at.y + title + 4 + line * cpu_step, cpu_square, cpu_square},
                        1, "cpu");
    }
  }
  double left = 1e9, right = 0;
  for (const Part& part : container.inside) {
    const Point there{at.x + part.box.x, at.y + part.box.y};
    if (!is_container(topology_[part.device])) {
      const double x = there.x + std::min(30.0, part.box.width / 2);
      const bool first_row = part.box.y < container.bar + 3 * gap;
      if (first_row) left = std::min(left, x), right = std::max(right, x);
      link({x, first_row ? at.y + container.bar : there.y - gap}, {x, there.y}, rate(part.device));
    }
    paint(part, there);
  }
  if (right > 0) canvas_.rectangle({left - 10, at.y + container.bar - 3, right - left + 20, 6}, 3, "bar");
}

void Drawing::paint(const Part& part, Point at) {
  const Device& device = topology_[part.device];
  if (is_container(device)) return paint_container(part, at);
  if (is_group(device)) return paint_group(part, at);
  paint_leaf(part, at);
}

Box Drawing::draw(Point corner) {
  std::vector<Part> tops;
  for (std::size_t id = 0; id < topology_.devices.size(); ++id)
    if (topology_.devices[id].parent < 0 && wanted_[id]) tops.push_back(measured(static_cast<int>(id)));
  std::vector<Part*> parts;
  for (Part& top : tops) parts.push_back(&top);
  Box room{corner.x, corner.y, 0, 0};
  constexpr double between = 54;
  flow(parts, room, width_, between);
  const double gbps = cpu_gbps(topology_);
  for (std::size_t at = 1; at < tops.size(); ++at) {  // from CPU to CPU
    const Box &one = tops[at - 1].box, &two = tops[at].box;
    if (!is_container(topology_[tops[at].device]) || one.y != two.y) continue;
    const double y = one.y + std::min({48.0, one.height / 2, two.height / 2});
    canvas_.line({one.x + one.width, y}, {two.x, y}, stroke(gbps), "cpus");
    canvas_.text({(one.x + one.width + two.x) / 2, y - 8}, fmt::format("{:.3g} GB/s", gbps), "small", "middle");
  }
  for (const Part& top : tops) paint(top, {top.box.x, top.box.y});
  return room;
}

}  // namespace

Box draw_tree(Canvas& canvas, const Topology& topology, Point corner, double width) {
  return Drawing(canvas, topology, width).draw(corner);
}

}  // namespace tutti::topology
