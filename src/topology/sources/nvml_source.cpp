// Adds what NVIDIA's driver reports about its GPUs.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/printable.h"
#include "topology/graph/cpus.h"
#include "topology/graph/pci.h"
#include "topology/graph/rates.h"
#include "topology/sources/detect.h"
#include "topology/sources/fabric.h"
#include "topology/sources/nvml.h"

namespace tutti::topology {
namespace {

using nvml::ask;
using nvml::Handle;

constexpr std::uint32_t nvidia = 0x10de;
constexpr std::array p2p_words = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};
constexpr unsigned gpus_max = 1024, parts_max = 64;

class Source {
 public:
  Source(Topology& topology, const nvml::Functions& functions) : topology_(topology), nvml_(functions) {}
  void read();

 private:
  struct Gpu {
    Handle handle;
    int id;
  };
  void device(unsigned number);
  void attach(const Gpu& gpu);
  void links(const Gpu& gpu);
  bool active(const Gpu& gpu, unsigned link);
  int remote(const Gpu& gpu, unsigned link, bool& to_cpu);
  double rate(const Gpu& gpu, unsigned link) const;
  int hidden_switch();
  void memory_link(const Gpu& gpu, int count, double gbps);
  void chip_links(const Gpu& gpu);
  void fabric(const Gpu& gpu);
  void peers();
  void parts();
  void leave_out_unlisted();
  /// Records failures; true if there was none.
  bool succeeded(int code, std::string_view what, const std::string& who);
  void note(const std::string& line) { topology_.notes.push_back(line); }
  const std::string& bus_id(const Gpu& gpu) const { return topology_[gpu.id].bus_id; }

  Topology& topology_;
  const nvml::Functions& nvml_;
  std::vector<Gpu> gpus_;
  // operation and error, with the GPUs concerned
  std::map<std::pair<std::string, int>, std::set<std::string>> failed_;
  bool links_unknown_ = false;
};

bool Source::succeeded(int code, std::string_view what, const std::string& who) {
  if (code != nvml::success) failed_[{std::string(what), code}].insert(who);
  return code == nvml::success;
}

std::optional<std::string> address(nvml::PciInfo& info) {
  info.bus_id[sizeof info.bus_id - 1] = '\0';
  info.bus_id_legacy[sizeof info.bus_id_legacy - 1] = '\0';
  return bus_id_of(info.bus_id[0] != '\0' ? info.bus_id : info.bus_id_legacy);
}

void Source::device(unsigned number) {
  Handle handle = nullptr;
  nvml::PciInfo here = {};
  const std::string who = fmt::format("GPU{}", number);
  if (!succeeded(ask(nvml_.handle_by_index, number, &handle), "the handle of", who) ||
      !succeeded(ask(nvml_.pci_info, handle, &here), "the address of", who))
    return;
  const auto bus_id = address(here);
  if (!bus_id) return note(fmt::format("NVML reports an invalid address for {}", who));
  int id = topology_.find_bus(*bus_id);
  if (id < 0) id = topology_.add({.bus_id = *bus_id, .vendor = nvidia, .source = "nvml"});
  Device& gpu = topology_[id];
  gpu.kind = DeviceKind::gpu;
  gpu.index = static_cast<int>(number);
  gpu.name = who;
  int major = 0, minor = 0;
  if (ask(nvml_.compute_capability, handle, &major, &minor) == nvml::success) gpu.compute = 10 * major + minor;
  unsigned node = 0;
  if (ask(nvml_.memory_node, handle, &node) == nvml::success) gpu.memory_numa = static_cast<int>(node);
  gpus_.push_back({handle, id});
}

/// For GPUs that /sys does not show (virtual machines, containers): the node with the nearest CPUs, and the rate of its
/// link.
void Source::attach(const Gpu& gpu) {
  Device& device = topology_[gpu.id];
  unsigned generation = 0, width = 0;
  if (device.gbps <= 0 && ask(nvml_.pcie_generation, gpu.handle, &generation) == nvml::success &&
      ask(nvml_.pcie_width, gpu.handle, &width) == nvml::success && width > 0 && width <= 32) {
    constexpr std::array speeds = {"", "2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s", "64 GT/s"};
    if (generation > 0 && generation < speeds.size())
      device.gbps = pci_gbps(speeds[generation], static_cast<int>(width));
  }
  if (device.parent >= 0) return;
  constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, cpus_max / word_bits> mask = {};
  std::string list;
  if (ask(nvml_.cpu_affinity, gpu.handle, static_cast<unsigned>(mask.size()), mask.data()) == nvml::success) {
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < cpus_max; ++cpu)
      if ((mask[cpu / word_bits] >> cpu % word_bits & 1) != 0) cpus.push_back(static_cast<int>(cpu));
    list = list_of_cpus(cpus);
  }
  const std::vector<int> nodes = topology_.of_kind(DeviceKind::numa);
  std::vector<int> near;
  for (const int node : nodes)
    if (!common_cpus(topology_[node].cpus, list).empty()) near.push_back(node);
  if (near.size() == 1 || nodes.size() == 1) device.parent = near.size() == 1 ? near.front() : nodes.front();
}

int Source::hidden_switch() {
  for (const int id : topology_.of_kind(DeviceKind::nvswitch))
    if (topology_[id].bus_id.empty()) return id;
  return topology_.add({.kind = DeviceKind::nvswitch, .name = "NVS", .source = "nvml"});
}

/// The device at the other end: a GPU, a switch, or the GPU itself if NVML does not say; -1: not part of this machine.
int Source::remote(const Gpu& gpu, unsigned link, bool& to_cpu) {
  nvml::PciInfo there = {};
  int type = -1;
  const bool typed = ask(nvml_.remote_type, gpu.handle, link, &type) == nvml::success;
  const int code = ask(nvml_.remote_pci_info, gpu.handle, link, &there);
  to_cpu = typed && type == nvml::remote_cpu;
  if (to_cpu) return -1;
  const auto bus_id = code == nvml::success ? address(there) : std::nullopt;
  const int known = bus_id ? topology_.find_bus(*bus_id) : -1;
  if (known >= 0 && topology_[known].kind == DeviceKind::gpu) return known;
  if (known >= 0 && (topology_[known].kind == DeviceKind::nvswitch || (typed && type == nvml::remote_switch))) {
    topology_[known].kind = DeviceKind::nvswitch;
    return known;
  }
  if (typed && type == nvml::remote_switch) return hidden_switch();
  if (typed && type == nvml::remote_gpu) return -1;  // hidden from this process, or in another machine
  // Switches that a machine hides have addresses like fffffff:ffff:ff, or none.
  if (code == nvml::success) return hidden_switch();
  succeeded(code, "the far ends of the NVLinks of", bus_id_of(this->bus_id(gpu)).value_or(""));
  return gpu.id;
}

/// Since Hopper a field is queried; the query also waits until links have come up.
bool Source::active(const Gpu& gpu, unsigned link) {
  int state = 0;
  nvml::FieldValue field{.field = nvml::nvlink_state, .scope = link};
  if (topology_[gpu.id].compute >= 90 && ask(nvml_.field_values, gpu.handle, 1, &field) == nvml::success &&
      field.result == nvml::success)
    return field.value.whole == 1;
  const int code = ask(nvml_.link_state, gpu.handle, link, &state);
  // The answer of a GPU without NVLinks, or with fewer.
  if (code == nvml::not_supported || code == nvml::invalid_argument) return false;
  if (!succeeded(code, "the NVLinks of", bus_id(gpu))) links_unknown_ = true;
  return code == nvml::success && state == 1;
}

/// GB/s of one link; for an old or unknown GPU, by the version of its links.
double Source::rate(const Gpu& gpu, unsigned link) const {
  const int compute = topology_[gpu.id].compute;
  unsigned version = 0;
  if (compute > 0 || ask(nvml_.link_version, gpu.handle, link, &version) != nvml::success)
    return rates::nvlink(compute);
  return rates::nvlink(version >= 7 ? 100 : version >= 6 ? 90 : version >= 2 ? 70 : 60);
}

void Source::memory_link(const Gpu& gpu, int count, double gbps) {
  const int home = topology_.above(gpu.id, DeviceKind::numa);
  if (home < 0 || count == 0) return;
  Link link{.from = gpu.id, .to = home, .kind = LinkKind::memory, .count = count, .gbps = gbps, .source = "nvml"};
  topology_.links.push_back(link);
  std::swap(link.from, link.to);
  topology_.links.push_back(link);
}

void Source::links(const Gpu& gpu) {
  std::map<int, int> ends;
  int away = 0, to_cpus = 0;
  double gbps = 0;
  for (unsigned link = 0; link < nvml::links_max; ++link) {
    unsigned capable = 0;
    if (!active(gpu, link)) continue;
    const int code = ask(nvml_.link_capability, gpu.handle, link, nvml::capability_p2p, &capable);
    bool to_cpu = false;
    const int end = remote(gpu, link, to_cpu);
    if (gbps <= 0) gbps = rate(gpu, link);
    if (to_cpu)
      ++to_cpus;
    else if (code == nvml::success && capable == 0)
      continue;
    else if (end < 0)
      ++away;
    else if (end != gpu.id)
      ++ends[end];
  }
  for (const auto& [end, count] : ends)
    topology_.links.push_back({.from = gpu.id, .to = end, .count = count, .gbps = gbps, .source = "nvml"});
  memory_link(gpu, to_cpus, gbps);
  if (away > 0)
    note(fmt::format("{}: the far ends of {} NVLinks are GPUs that this process cannot see", bus_id(gpu), away));
}

/// Adds links between the GPU and the CPU of a superchip.
void Source::chip_links(const Gpu& gpu) {
  nvml::FieldValue count{.field = nvml::c2c_count};
  if (ask(nvml_.field_values, gpu.handle, 1, &count) != nvml::success || count.result != nvml::success) return;
  int up = 0;
  double gbps = 0;
  for (unsigned link = 0; link < std::min(count.value.whole, nvml::links_max); ++link) {
    nvml::FieldValue asked[] = {{.field = nvml::c2c_status, .scope = link}, {.field = nvml::c2c_mbps, .scope = link}};
    if (ask(nvml_.field_values, gpu.handle, 2, &asked[0]) != nvml::success) continue;
    if (asked[0].result != nvml::success || asked[0].value.whole != 1 || asked[1].result != nvml::success) continue;
    ++up;
    gbps = asked[1].value.whole / 1000.0;
  }
  memory_link(gpu, up, gbps);
}

void Source::fabric(const Gpu& gpu) {
  nvml::FabricInfo info{.version = static_cast<unsigned>(sizeof(nvml::FabricInfo)) | 2u << 24};
  if (ask(nvml_.fabric_info, gpu.handle, &info) != nvml::success || info.state == nvml::fabric_none) return;
  Device& device = topology_[gpu.id];
  device.off_fabric = info.state != nvml::fabric_completed || info.status != nvml::success;
  const bool named = std::ranges::any_of(info.cluster, [](unsigned char byte) { return byte != 0; });
  if (!named || device.off_fabric) return;
  std::string cluster;
  for (const unsigned char byte : info.cluster) cluster += fmt::format("{:02x}", byte);
  device.fabric = fmt::format("{}/{}", cluster, info.clique);
}

void Source::peers() {
  for (const Gpu& gpu : gpus_)
    for (const Gpu& other : gpus_) {
      if (gpu.id == other.id) continue;
      int read = 0, write = 0, level = 0;
      if (ask(nvml_.p2p_status, gpu.handle, other.handle, nvml::p2p_read, &read) == nvml::success &&
          ask(nvml_.p2p_status, gpu.handle, other.handle, nvml::p2p_write, &write) == nvml::success) {
        const auto worse = static_cast<std::size_t>(read != 0 ? read : write);
        topology_.p2p[{gpu.id, other.id}] = p2p_words[std::min(worse, p2p_words.size() - 1)];
      }
      const bool seen = topology_[gpu.id].source != "nvml" && topology_[other.id].source != "nvml";
      if (seen || ask(nvml_.common_ancestor, gpu.handle, other.handle, &level) != nvml::success) continue;
      topology_.stated[{gpu.id, other.id}] = level <= 10   ? PathKind::pix
                                             : level <= 20 ? PathKind::pxb
                                             : level <= 30 ? PathKind::phb
                                             : level <= 40 ? PathKind::node
                                                           : PathKind::sys;
    }
}

/// Adds the instances of a GPU in MIG mode: separate devices without NVLink or P2P between them.
void Source::parts() {
  for (const Gpu& gpu : gpus_) {
    unsigned on = 0, later = 0, most = 0;
    if (ask(nvml_.mig_mode, gpu.handle, &on, &later) != nvml::success || on == 0) continue;
    if (ask(nvml_.mig_count, gpu.handle, &most) != nvml::success) most = parts_max;
    std::vector<std::string> found;
    for (unsigned part = 0; part < std::min(most, parts_max); ++part)
      if (Handle instance = nullptr; ask(nvml_.mig_handle, gpu.handle, part, &instance) == nvml::success)
        found.push_back(std::to_string(part));
    std::erase_if(topology_.links, [&](const Link& link) {
      return link.kind != LinkKind::memory && (link.from == gpu.id || link.to == gpu.id);
    });
    if (found.empty()) {
      note(fmt::format("{} is in MIG mode and has no instance: nothing can run on it", bus_id(gpu)));
      continue;
    }
    note(fmt::format("{} is in MIG mode: its {} instances are devices of their own, without NVLink and P2P",
                     bus_id(gpu), found.size()));
    topology_[gpu.id].partition = found.front();
    topology_[gpu.id].name.clear();
    for (std::size_t at = 1; at < found.size(); ++at) {
      Device part = topology_[gpu.id];
      part.partition = found[at];
      topology_.add(std::move(part));
    }
  }
}

/// Functions that NVML does not list belong to other processes, or to no driver. GPUs of other makers get the numbers
/// after NVIDIA's.
void Source::leave_out_unlisted() {
  std::vector<bool> keep(topology_.devices.size(), true);
  std::vector<std::string> gone;
  for (const int gpu : topology_.gpus()) {
    if (std::ranges::count(gpus_, gpu, &Gpu::id) > 0 || !topology_[gpu].partition.empty()) continue;
    if (topology_[gpu].vendor == nvidia) {
      gone.push_back(topology_[gpu].bus_id);
      keep[static_cast<std::size_t>(gpu)] = false;
    } else {
      topology_[gpu].index = -1;
      topology_[gpu].name.clear();
    }
  }
  if (gone.empty()) return;
  note(fmt::format("NVML lists {} of {} NVIDIA GPUs; {} cannot be used by this process", gpus_.size(),
                   gpus_.size() + gone.size(), joined(gone, ", ")));
  topology_ = subset(topology_, keep);
}

void Source::read() {
  if (const int code = ask(nvml_.init); code != nvml::success)
    return note(fmt::format("NVML does not start ({}): NVLinks are not known", nvml::text_of(code)));
  unsigned count = 0;
  const int counted = ask(nvml_.device_count, &count);
  if (counted != nvml::success)
    note(fmt::format("NVML cannot count GPUs ({}): NVLinks are not known", nvml::text_of(counted)));
  for (unsigned number = 0; number < std::min(count, gpus_max); ++number) device(number);
  for (const Gpu& gpu : gpus_) attach(gpu);
  for (const Gpu& gpu : gpus_) links(gpu);
  for (const Gpu& gpu : gpus_) chip_links(gpu);
  for (const Gpu& gpu : gpus_) fabric(gpu);
  peers();
  topology_.nvlink_known = !gpus_.empty() && !links_unknown_;
  parts();
  if (counted == nvml::success && failed_.empty()) leave_out_unlisted();
  for (const auto& [what, who] : failed_)
    note(fmt::format("NVML cannot say {} {} ({})", what.first, joined(who, ", "), nvml::text_of(what.second)));
  ask(nvml_.shutdown);
}

}  // namespace

void add_nvml(Topology& topology, const std::string& name) {
  const HeldStdio held;
  if (const auto functions = nvml::Functions::load(name))
    Source(topology, *functions).read();
  else if (!topology.nvlink_known && has_nvidia(topology))
    topology.notes.push_back(fmt::format("{} is not there: NVLinks are not known", name));
}

}  // namespace tutti::topology
