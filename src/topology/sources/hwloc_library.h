// libhwloc, loaded when it is installed.
#pragma once

#include <hwloc.h>

#include "base/dylib.h"
#include "base/error.h"

namespace tutti::topology {

/// The functions of libhwloc that are used here.
struct HwlocLibrary {
  Dylib loaded;
  decltype(&::hwloc_topology_init) topology_init = nullptr;
  decltype(&::hwloc_topology_destroy) topology_destroy = nullptr;
  decltype(&::hwloc_topology_set_flags) topology_set_flags = nullptr;
  decltype(&::hwloc_topology_set_io_types_filter) topology_set_io_types_filter = nullptr;
  decltype(&::hwloc_topology_set_synthetic) topology_set_synthetic = nullptr;
  decltype(&::hwloc_topology_load) topology_load = nullptr;
  decltype(&::hwloc_topology_export_xmlbuffer) topology_export_xmlbuffer = nullptr;
  decltype(&::hwloc_free_xmlbuffer) free_xmlbuffer = nullptr;
  decltype(&::hwloc_type_sscanf) type_sscanf = nullptr;
  decltype(&::hwloc_obj_type_is_cache) obj_type_is_cache = nullptr;

  /// Errors: system (it is not installed, or lacks a function).
  static Result<HwlocLibrary> load();
};

}  // namespace tutti::topology
