#include "topology/sources/hwloc_library.h"

#include <fmt/format.h>

namespace tutti::topology {

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

}  // namespace tutti::topology
