// Derives a machine from a matrix of `nvidia-smi topo -m`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "topology/graph/path.h"
#include "topology/graph/rates.h"
#include "topology/sources/fabric.h"
#include "topology/sources/read.h"
#include "topology/sources/smi_text.h"

namespace tutti::topology {
namespace {

/// From near to far. nvlink: the matrix does not show the PCI distance.
enum Level : int { self = 0, pix, pxb, phb, node, sys, unsaid };

constexpr PathKind kinds[] = {PathKind::loc, PathKind::pix,  PathKind::pxb,
                              PathKind::phb, PathKind::node, PathKind::sys};

using Levels = std::vector<std::vector<int>>;

int level_of(std::string_view cell) {
  if (cell == "X") return self;
  for (int level = pix; level <= sys; ++level)
    if (name(kinds[level]) == cell) return level;
  return unsaid;
}

Levels levels_of(const SmiMatrix& matrix) {
  const std::size_t count = matrix.names.size();
  Levels levels(count, std::vector<int>(count, unsaid));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) {
      levels[a][b] = a == b ? static_cast<int>(self) : level_of(matrix.cells[a][b]);
      // A row that was cut off is taken from the columns of the others.
      if (levels[a][b] == unsaid && matrix.cells[a][b].empty()) levels[a][b] = level_of(matrix.cells[b][a]);
    }
  return levels;
}

/// Derives the PCI distances that NVLink hides from third devices: of three distances the two longest are equal. If no
/// third device helps, NUMA nodes decide.
void fill_unsaid(const SmiMatrix& matrix, Levels& levels) {
  const std::size_t count = levels.size();
  const Levels said = levels;
  std::vector<std::size_t> thirds;  // to which the distance from a is known
  for (std::size_t a = 0; a < count; ++a) {
    thirds.clear();
    for (std::size_t c = 0; c < count; ++c)
      if (c != a && said[a][c] != unsaid) thirds.push_back(c);
    for (std::size_t b = 0; b < count; ++b) {
      if (said[a][b] != unsaid) continue;
      int at_most = unsaid, exactly = unsaid;
      for (const std::size_t c : thirds) {
        const int one = said[a][c], two = said[b][c];
        if (c == b || two == unsaid) continue;
        at_most = std::min(at_most, std::max(one, two));
        if (one != two) exactly = std::max(one, two);
      }
      const bool same = !matrix.cpus[a].empty() && matrix.cpus[a] == matrix.cpus[b];
      const bool known = !matrix.cpus[a].empty() && !matrix.cpus[b].empty();
      levels[a][b] = exactly != unsaid ? exactly : std::min(at_most, static_cast<int>(same || !known ? node : sys));
    }
  }
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < a; ++b) levels[a][b] = levels[b][a] = std::max(levels[a][b], levels[b][a]);
}

/// Groups of devices connected by steps of at most `level`; the first device names the group.
std::vector<std::size_t> groups(const Levels& levels, int level) {
  std::vector<std::size_t> group(levels.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t a = 0; a < levels.size(); ++a)
    for (std::size_t b = a + 1; b < levels.size(); ++b)
      if (levels[a][b] <= level && group[b] != group[a]) {
        const std::size_t from = std::max(group[a], group[b]), to = std::min(group[a], group[b]);
        std::ranges::replace(group, from, to);
      }
  return group;
}

class Builder {
 public:
  explicit Builder(const SmiMatrix& matrix) : matrix_(matrix), levels_(levels_of(matrix)) {}
  Topology build();

 private:
  const std::vector<std::size_t>& group_of(int level) const { return groups_[static_cast<std::size_t>(level)]; }
  int made(DeviceKind kind, int level, std::size_t device, int parent);
  void nvlinks();
  void state();

  const SmiMatrix& matrix_;
  Levels levels_;
  std::vector<std::vector<std::size_t>> groups_;  // by level
  Topology topology_;
  std::vector<int> ids_;
  std::map<std::pair<int, std::size_t>, int> made_;  // by level and group
};

bool is_gpu_name(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 && name[3] >= '0' && name[3] <= '9';
}

int Builder::made(DeviceKind kind, int level, std::size_t device, int parent) {
  const std::size_t group = group_of(level)[device];
  const auto [at, is_new] = made_.try_emplace({level, group}, -1);
  if (!is_new) return at->second;
  Device made{.kind = kind, .parent = parent, .source = "matrix"};
  if (kind == DeviceKind::numa) {
    const auto& all = group_of(level);
    for (std::size_t member = 0; member < all.size(); ++member) {
      if (all[member] != group) continue;
      if (made.index < 0) made.index = matrix_.numa[member];
      if (made.cpus.empty()) made.cpus = matrix_.cpus[member];
    }
    made.numa = made.index;
    const auto number = std::ranges::count(topology_.devices, DeviceKind::numa, &Device::kind);
    made.name = made.index >= 0 ? fmt::format("NUMA{}", made.index) : fmt::format("node {}", number);
  } else {
    made.name = fmt::format("{} {}", kind == DeviceKind::bridge ? "switch" : "root", topology_.devices.size());
  }
  return at->second = topology_.add(made);
}

Topology Builder::build() {
  fill_unsaid(matrix_, levels_);
  for (int level = self; level <= unsaid; ++level) groups_.push_back(groups(levels_, level));
  const auto shared = [&](int level, std::size_t device) {
    return std::ranges::count(group_of(level), group_of(level)[device]) > 1;
  };
  for (std::size_t at = 0; at < matrix_.names.size(); ++at) {
    const int home = made(DeviceKind::numa, node, at, -1);
    int parent = made(DeviceKind::host_bridge, phb, at, home);
    const bool chained = shared(pxb, at) && group_of(pxb) != group_of(pix);
    if (chained) parent = made(DeviceKind::bridge, pxb, at, parent);
    if (chained || shared(pix, at)) parent = made(DeviceKind::bridge, pix, at, parent);
    Device device{.kind = DeviceKind::nic,
                  .name = matrix_.names[at],
                  .parent = parent,
                  .numa = matrix_.numa[at],
                  .cpus = matrix_.cpus[at],
                  .source = "matrix"};
    if (is_gpu_name(device.name)) {
      device.kind = DeviceKind::gpu;
      std::from_chars(device.name.data() + 3, device.name.data() + device.name.size(), device.index);
    } else if (device.name.starts_with("NIC")) {
      std::size_t number = matrix_.nic_names.size();
      std::from_chars(device.name.data() + 3, device.name.data() + device.name.size(), number);
      if (number < matrix_.nic_names.size() && !matrix_.nic_names[number].empty())
        device.name = matrix_.nic_names[number];
    }
    ids_.push_back(topology_.add(device));
  }
  nvlinks();
  state();
  normalise(topology_);
  return std::move(topology_);
}

int links_in(std::string_view cell) {
  int count = 0;
  if (cell.starts_with("NV")) std::from_chars(cell.data() + 2, cell.data() + cell.size(), count);
  return count;
}

/// The matrix gives the number of links to a peer, but not whether a switch is between.
void Builder::nvlinks() {
  const std::size_t count = ids_.size();
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b || !is_gpu_name(matrix_.names[a]) || !is_gpu_name(matrix_.names[b])) continue;
      const std::string& cell = matrix_.cells[a][b].empty() ? matrix_.cells[b][a] : matrix_.cells[a][b];
      if (const int links = links_in(cell); links > 0)
        topology_.links.push_back({.from = ids_[a], .to = ids_[b], .count = links, .source = "matrix"});
    }
  find_switches(topology_);
  // 12 for an A100, 18 for a Hopper: a matrix does not name the GPU.
  std::map<int, int> own;
  int links_most = 0;
  for (const Link& link : topology_.links) links_most = std::max(links_most, own[link.from] += link.count);
  const double gbps = rates::nvlink(links_most > 12 ? 90 : links_most > 6 ? 80 : 70);
  for (Link& link : topology_.links) link.gbps = gbps;
}

/// Not every matrix has a tree; the matrix takes precedence.
void Builder::state() {
  int kept = 0;
  for (std::size_t a = 0; a < ids_.size(); ++a)
    for (std::size_t b = 0; b < ids_.size(); ++b) {
      const int level = level_of(matrix_.cells[a][b]);
      if (a == b || level == unsaid || pci_path(topology_, ids_[a], ids_[b]).kind == kinds[level]) continue;
      topology_.stated[{ids_[a], ids_[b]}] = kinds[level];
      ++kept;
    }
  if (kept > 0)
    topology_.notes.push_back(fmt::format("{} cells of the matrix fit no tree of switches; used as they are", kept));
}

void add_p2p(Topology& topology, const SmiMatrix& matrix) {
  std::map<std::string, int> gpus;
  for (const int id : topology.gpus()) gpus.try_emplace(topology[id].name, id);
  for (std::size_t a = 0; a < matrix.names.size(); ++a)
    for (std::size_t b = 0; b < matrix.names.size(); ++b) {
      const auto from = gpus.find(matrix.names[a]), to = gpus.find(matrix.names[b]);
      const std::string& cell = matrix.cells[a][b];
      if (a != b && from != gpus.end() && to != gpus.end() && !cell.empty() && cell != "X")
        topology.p2p[{from->second, to->second}] = cell;
    }
}

/// GPUs of which only the P2P states are known.
Topology only_gpus(const SmiMatrix& matrix) {
  Topology topology{.nvlink_known = false};
  for (const std::string& name : matrix.names)
    if (is_gpu_name(name)) topology.add({.kind = DeviceKind::gpu, .name = name, .source = "matrix"});
  topology.notes.push_back("the file has only P2P states: how the GPUs are connected is not known");
  return topology;
}

}  // namespace

Result<Topology> read_smi(std::string_view text) {
  auto matrices = TUTTI_TRY(read_smi_text(text));
  const SmiMatrix* paths = nullptr;
  const SmiMatrix* p2p = nullptr;
  int machines = 0;
  for (const SmiMatrix& matrix : matrices) {
    if (matrix.is_p2p()) {
      p2p = &matrix;
      continue;
    }
    ++machines;
    if (!paths || matrix.gpus() > paths->gpus()) paths = &matrix;
  }
  Topology topology = paths ? Builder(*paths).build() : only_gpus(*p2p);
  if (p2p && (!paths || p2p->gpus() == paths->gpus())) add_p2p(topology, *p2p);
  if (machines > 1)
    topology.notes.push_back(fmt::format("the file has {} machines; this is the one with most GPUs", machines));
  return topology;
}

}  // namespace tutti::topology
