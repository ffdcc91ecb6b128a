#include "topology/sources/hwloc_source.h"

#include <sched.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "topology/sources/hwloc_library.h"
#include "topology/sources/read.h"

namespace tutti::topology {

namespace {

struct Destroy {
  const HwlocLibrary* hwloc;
  void operator()(hwloc::Topology* topology) const { hwloc->topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc::Topology, Destroy>;

Handle fresh(const HwlocLibrary& hwloc) {
  hwloc::Topology* topology = nullptr;
  if (hwloc.topology_init(&topology) != 0) topology = nullptr;
  return {topology, Destroy{&hwloc}};
}

/// hwloc asks for this process's CPUs with ever larger sets until the system takes one: without an end where a filter
/// forbids to ask.
Result<void> can_ask_for_cpus() {
  constexpr std::size_t cpus_max = std::size_t{1} << 20;  // more than Linux can have
  int why = EINVAL;
  for (std::size_t cpus = 1024; why == EINVAL && cpus <= cpus_max; cpus *= 2) {
    std::vector<unsigned long> set(cpus / (sizeof(unsigned long) * CHAR_BIT));
    const std::size_t bytes = set.size() * sizeof(unsigned long);
    why = ::sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(set.data())) == 0 ? 0 : errno;
  }
  if (why == 0) return {};
  return Error{.code = Code::system, .what = "hwloc is not asked: sched_getaffinity is forbidden", .sys_errno = why};
}

/// Goes through XML, so that a single reader interprets hwloc's data.
Result<Topology> taken(const HwlocLibrary& hwloc, const Handle& handle) {
  char* text = nullptr;
  int bytes = 0;
  if (hwloc.topology_export_xmlbuffer(handle.get(), &text, &bytes, 0) != 0)
    return Error{.code = Code::system, .what = "hwloc_topology_export_xmlbuffer", .sys_errno = errno};
  auto topology = read_hwloc(std::string_view(text, bytes > 0 ? static_cast<std::size_t>(bytes) - 1 : 0));
  hwloc.free_xmlbuffer(handle.get(), text);
  return topology;
}

}  // namespace

Result<HwlocLibrary> HwlocLibrary::load() {
  HwlocLibrary hwloc;
  hwloc.loaded = TUTTI_TRY(Dylib::open({"libhwloc.so.15"}));
  const char* missing = nullptr;
  const auto find = [&](auto*& function, const char* name) {
    if (!hwloc.loaded.load(function, name)) missing = name;
  };
#define TUTTI_FIND(name) find(hwloc.name, "hwloc_" #name)
  TUTTI_FIND(topology_init);
  TUTTI_FIND(topology_destroy);
  TUTTI_FIND(topology_set_flags);
  TUTTI_FIND(topology_set_io_types_filter);
  TUTTI_FIND(topology_set_synthetic);
  TUTTI_FIND(topology_load);
  TUTTI_FIND(topology_export_xmlbuffer);
  TUTTI_FIND(free_xmlbuffer);
  TUTTI_FIND(type_sscanf);
  TUTTI_FIND(obj_type_is_cache);
#undef TUTTI_FIND
  if (missing != nullptr) return Error{.code = Code::system, .what = fmt::format("libhwloc.so.15 has no {}", missing)};
  return hwloc;
}

Result<Topology> hwloc_cpus() {
  TUTTI_TRY(can_ask_for_cpus());
  // Includes CPUs that this process may not use, so that GPUs near them stay there.
  const HeldStdio held;
  const auto hwloc = HwlocLibrary::load();
  if (!hwloc) return Error(hwloc.error());
  const Handle handle = fresh(*hwloc);
  if (!handle || hwloc->topology_set_flags(handle.get(), hwloc::include_disallowed) != 0 ||
      hwloc->topology_set_io_types_filter(handle.get(), hwloc::TypeFilter::keep_none) != 0 ||
      hwloc->topology_load(handle.get()) != 0)
    return Error{.code = Code::system, .what = "hwloc cannot load the machine", .sys_errno = errno};
  return taken(*hwloc, handle);
}

Result<Topology> read_synthetic(std::string_view text) {
  const HeldStdio held;
  const auto hwloc = HwlocLibrary::load();
  if (!hwloc) return Error(hwloc.error()).during("read a synthetic machine");
  TUTTI_TRY(check_synthetic(*hwloc, text));
  const Handle handle = fresh(*hwloc);
  if (!handle) return Error{.code = Code::system, .what = "hwloc_topology_init", .sys_errno = errno};
  const std::string description(text);
  if (hwloc->topology_set_synthetic(handle.get(), description.c_str()) != 0 || hwloc->topology_load(handle.get()) != 0)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("synthetic machine \"{}\": hwloc refuses it", text.substr(0, 80))};
  return taken(*hwloc, handle);
}

}  // namespace tutti::topology
