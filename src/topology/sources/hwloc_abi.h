// The part of libhwloc's binary interface that tutti uses, declared here so that tutti builds without hwloc's headers
// and loads the library where it is installed. Numbers and signatures are those of <hwloc.h> 2.x (libhwloc.so.15);
// hwloc_abi_test compares them with the header where that is installed.
#pragma once

#include <cstddef>

namespace tutti::topology::hwloc {

struct Topology;  ///< hwloc_topology

/// hwloc_obj_type_t
enum class ObjectType : int {
  machine = 0,
  package = 1,
  core = 2,
  pu = 3,
  group = 12,
  numa_node = 13,
  die = 19,
};

/// hwloc_type_filter_e
enum class TypeFilter : int { keep_none = 1 };

/// hwloc_topology_flags_e
inline constexpr unsigned long include_disallowed = 1;

using TopologyInit = int(Topology**);
using TopologyDestroy = void(Topology*);
using TopologySetFlags = int(Topology*, unsigned long);
using TopologySetIoTypesFilter = int(Topology*, TypeFilter);
using TopologySetSynthetic = int(Topology*, const char*);
using TopologyLoad = int(Topology*);
using TopologyExportXmlbuffer = int(Topology*, char**, int*, unsigned long);
using FreeXmlbuffer = void(Topology*, char*);
using TypeSscanf = int(const char*, ObjectType*, void*, std::size_t);
using ObjTypeIsCache = int(ObjectType);

}  // namespace tutti::topology::hwloc
