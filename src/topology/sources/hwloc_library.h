// libhwloc, loaded when it is installed.
#pragma once

#include "base/dylib.h"
#include "base/error.h"
#include "topology/sources/hwloc_abi.h"

namespace tutti::topology {

/// The functions of libhwloc that are used here.
struct HwlocLibrary {
  Dylib loaded;
  hwloc::TopologyInit* topology_init = nullptr;
  hwloc::TopologyDestroy* topology_destroy = nullptr;
  hwloc::TopologySetFlags* topology_set_flags = nullptr;
  hwloc::TopologySetIoTypesFilter* topology_set_io_types_filter = nullptr;
  hwloc::TopologySetSynthetic* topology_set_synthetic = nullptr;
  hwloc::TopologyLoad* topology_load = nullptr;
  hwloc::TopologyExportXmlbuffer* topology_export_xmlbuffer = nullptr;
  hwloc::FreeXmlbuffer* free_xmlbuffer = nullptr;
  hwloc::TypeSscanf* type_sscanf = nullptr;
  hwloc::ObjTypeIsCache* obj_type_is_cache = nullptr;

  /// Errors: system (it is not installed, or lacks a function).
  static Result<HwlocLibrary> load();
};

}  // namespace tutti::topology
