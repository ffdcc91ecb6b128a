// What NVIDIA's driver says: loaded at run time, by prototypes of our own.
#include <dlfcn.h>

#include <array>
#include <memory>

#include <fmt/format.h>

#include "topology/detect.h"
#include "topology/pci.h"
#include "topology/rates.h"

namespace tutti::topology {
namespace {

// Parts of NVML's interface, which NVIDIA keeps as it is.
using Handle = void*;
struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
constexpr int success = 0, p2p_supported = 0, remote_gpu = 0;
constexpr unsigned links_max = 36;

constexpr int p2p_read = 0, p2p_write = 1;
constexpr std::array p2p_words = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};

struct Unload {
  void operator()(void* library) const { ::dlclose(library); }
};

class Nvml {
 public:
  Nvml(Topology& topology, void* library) : topology_(topology), library_(library) {}
  void ask();

 private:
  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    const auto address = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, function));
    return address ? address(arguments...) : not_there;
  }
  void device(unsigned number);
  void links(Handle handle, int gpu);
  int remote(Handle handle, unsigned link);
  void peers();
  void note(const std::string& line) { topology_.notes.push_back(line); }

  static constexpr int not_there = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
  Topology& topology_;
  void* library_;
  std::vector<std::pair<Handle, int>> gpus_;
};

/// The GPU or switch at the other end; -1: not known.
int Nvml::remote(Handle handle, unsigned link) {
  PciInfo there = {};
  int type = -1;
  const bool said = call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, &type) == success;
  const bool addressed = call("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, &there) == success;
  there.bus_id[sizeof there.bus_id - 1] = '\0';
  const auto bus_id = addressed ? bus_id_of(there.bus_id) : std::nullopt;
  const int known = bus_id ? topology_.find_bus(*bus_id) : -1;
  if (known >= 0 && topology_[known].kind == DeviceKind::gpu) return known;
  if (known >= 0 && topology_[known].kind == DeviceKind::nvswitch) return known;
  if (said && type == remote_gpu) return -1;  // of another machine, or hidden from this one
  for (const int id : topology_.of_kind(DeviceKind::nvswitch))
    if (topology_[id].bus_id.empty()) return id;
  return topology_.add({.kind = DeviceKind::nvswitch, .name = "NVS", .source = "nvml"});
}

void Nvml::links(Handle handle, int gpu) {
  std::map<int, int> ends;
  int failing = 0;
  for (unsigned link = 0; link < links_max; ++link) {
    unsigned active = 0, capable = 0;
    if (call("nvmlDeviceGetNvLinkState", handle, link, &active) != success || active == 0) continue;
    if (call("nvmlDeviceGetNvLinkCapability", handle, link, unsigned{p2p_supported}, &capable) == success &&
        capable == 0)
      continue;
    if (const int end = remote(handle, link); end >= 0 && end != gpu)
      ++ends[end];
    else
      ++failing;
  }
  for (const auto& [end, count] : ends)
    topology_.links.push_back(
        {.from = gpu, .to = end, .count = count, .gbps = rates::nvlink(topology_[gpu].compute), .source = "nvml"});
  if (failing > 0)
    note(fmt::format("{}: the far ends of {} NVLinks are not on this machine", topology_[gpu].bus_id, failing));
}

void Nvml::device(unsigned number) {
  Handle handle = nullptr;
  PciInfo here = {};
  if (call("nvmlDeviceGetHandleByIndex_v2", number, &handle) != success ||
      call("nvmlDeviceGetPciInfo_v3", handle, &here) != success)
    return note(fmt::format("NVML cannot say what GPU {} is", number));
  here.bus_id[sizeof here.bus_id - 1] = '\0';
  const auto bus_id = bus_id_of(here.bus_id);
  if (!bus_id) return note(fmt::format("NVML gives GPU {} an address that is none", number));
  int gpu = topology_.find_bus(*bus_id);
  if (gpu < 0) {
    // Hidden from /sys: the PCI tree above it is not known.
    const std::vector<int> nodes = topology_.of_kind(DeviceKind::numa);
    gpu = topology_.add({.kind = DeviceKind::gpu,
                         .bus_id = *bus_id,
                         .parent = nodes.size() == 1 ? nodes.front() : -1,
                         .source = "nvml"});
  }
  topology_[gpu].kind = DeviceKind::gpu;
  topology_[gpu].index = static_cast<int>(number);
  topology_[gpu].name = fmt::format("GPU{}", number);
  int major = 0, minor = 0;
  if (call("nvmlDeviceGetCudaComputeCapability", handle, &major, &minor) == success)
    topology_[gpu].compute = 10 * major + minor;
  gpus_.emplace_back(handle, gpu);
}

void Nvml::peers() {
  for (const auto& [handle, gpu] : gpus_)
    for (const auto& [other, peer] : gpus_) {
      if (gpu == peer) continue;
      int read = 0, write = 0;
      if (call("nvmlDeviceGetP2PStatus", handle, other, p2p_read, &read) != success ||
          call("nvmlDeviceGetP2PStatus", handle, other, p2p_write, &write) != success)
        continue;
      const auto worse = static_cast<std::size_t>(read != 0 ? read : write);
      topology_.p2p[{gpu, peer}] = p2p_words[std::min(worse, p2p_words.size() - 1)];
    }
}

void Nvml::ask() {
  if (const int code = call("nvmlInit_v2"); code != success)
    return note(fmt::format("NVML is there, but does not start (error {}): NVLinks are not known", code));
  unsigned count = 0;
  if (const int code = call("nvmlDeviceGetCount_v2", &count); code != success)
    note(fmt::format("NVML cannot count GPUs (error {}): NVLinks are not known", code));
  for (unsigned number = 0; number < std::min(count, 1024u); ++number) device(number);
  topology_.nvlink_known = !gpus_.empty();
  for (const auto& [handle, gpu] : gpus_) links(handle, gpu);
  peers();
  call("nvmlShutdown");
}

}  // namespace

void add_nvml(Topology& topology, const std::string& library) {
  const std::string name = library.empty() ? "libnvidia-ml.so.1" : library;
  const std::unique_ptr<void, Unload> loaded(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (loaded)
    Nvml(topology, loaded.get()).ask();
  else if (!topology.nvlink_known)
    topology.notes.push_back(fmt::format("{} is not there: NVLinks are not known", name));
}

}  // namespace tutti::topology
