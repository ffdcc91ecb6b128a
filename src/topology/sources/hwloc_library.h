// libhwloc, loaded when it is installed. The part of its binary interface that tutti uses is declared here, so that
// tutti builds without hwloc's headers. Numbers and signatures are those of <hwloc.h> 2.x (libhwloc.so.15);
// hwloc_abi_test compares them with the header where that is installed.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/dylib.h"
#include "base/error.h"

namespace tutti::topology {
namespace hwloc {

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

}  // namespace hwloc

/// The functions of libhwloc that are used here.
struct HwlocLibrary {
  Dylib loaded;
  int (*topology_init)(hwloc::Topology**) = nullptr;
  void (*topology_destroy)(hwloc::Topology*) = nullptr;
  int (*topology_set_flags)(hwloc::Topology*, unsigned long) = nullptr;
  int (*topology_set_io_types_filter)(hwloc::Topology*, hwloc::TypeFilter) = nullptr;
  int (*topology_set_synthetic)(hwloc::Topology*, const char*) = nullptr;
  int (*topology_load)(hwloc::Topology*) = nullptr;
  int (*topology_export_xmlbuffer)(hwloc::Topology*, char**, int*, unsigned long) = nullptr;
  void (*free_xmlbuffer)(hwloc::Topology*, char*) = nullptr;
  int (*type_sscanf)(const char*, hwloc::ObjectType*, void*, std::size_t) = nullptr;
  int (*obj_type_is_cache)(hwloc::ObjectType) = nullptr;

  /// Errors: system (it is not installed, or lacks a function).
  static Result<HwlocLibrary> load();
};

/// Checks descriptions of synthetic machines before hwloc reads them. Succeeds for hwloc(7)'s synthetic descriptions:
/// "pack:2 [numa(memory=1GB)] l3:2 core:4 pu:2", of 1 to 1024 characters, at most 32 levels and 65536 objects per
/// level. For some of the refused texts hwloc 2.9 itself leaks memory, reads uninitialised memory or aborts. Loops of
/// indexes may name only levels in the text. Errors: invalid_argument (with the position in the text).
Result<void> check_synthetic(const HwlocLibrary& hwloc, std::string_view text);

}  // namespace tutti::topology
