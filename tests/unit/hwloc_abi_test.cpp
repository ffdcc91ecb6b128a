// Are our declarations of libhwloc's binary interface those of its header? The compiler says so; nothing runs.
#include <gtest/gtest.h>

#include <hwloc.h>

#include <type_traits>

#include "topology/sources/hwloc_library.h"

namespace tutti::topology::hwloc {
namespace {

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
SAME_NUMBER(ObjectType::machine, HWLOC_OBJ_MACHINE);
SAME_NUMBER(ObjectType::package, HWLOC_OBJ_PACKAGE);
SAME_NUMBER(ObjectType::core, HWLOC_OBJ_CORE);
SAME_NUMBER(ObjectType::pu, HWLOC_OBJ_PU);
SAME_NUMBER(ObjectType::group, HWLOC_OBJ_GROUP);
SAME_NUMBER(ObjectType::numa_node, HWLOC_OBJ_NUMANODE);
SAME_NUMBER(ObjectType::die, HWLOC_OBJ_DIE);
SAME_NUMBER(TypeFilter::keep_none, HWLOC_TYPE_FILTER_KEEP_NONE);
SAME_NUMBER(include_disallowed, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
static_assert(sizeof(ObjectType) == sizeof(hwloc_obj_type_t) && sizeof(TypeFilter) == sizeof(hwloc_type_filter_e));

/// Whether two types are passed alike: the same, or pointers and enumerations where the other has such.
template <class Ours, class Theirs>
constexpr bool passed_alike = std::is_same_v<Ours, Theirs> || (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                              (std::is_enum_v<Ours> && std::is_enum_v<Theirs>);

template <class Ours, class Theirs>
struct Alike : std::false_type {};
template <class OursResult, class... Ours, class TheirsResult, class... Theirs>
struct Alike<OursResult(Ours...), TheirsResult(Theirs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs))
      return passed_alike<OursResult, TheirsResult> && (passed_alike<Ours, Theirs> && ...);
    else
      return false;
  }();
};

#define SAME_FUNCTION(name) \
  static_assert(Alike<std::remove_pointer_t<decltype(HwlocLibrary::name)>, decltype(::hwloc_##name)>::value)
SAME_FUNCTION(topology_init);
SAME_FUNCTION(topology_destroy);
SAME_FUNCTION(topology_set_flags);
SAME_FUNCTION(topology_set_io_types_filter);
SAME_FUNCTION(topology_set_synthetic);
SAME_FUNCTION(topology_load);
SAME_FUNCTION(topology_export_xmlbuffer);
SAME_FUNCTION(free_xmlbuffer);
SAME_FUNCTION(type_sscanf);
SAME_FUNCTION(obj_type_is_cache);

TEST(HwlocAbi, IsThatOfTheHeader) {}  // this file compiles

}  // namespace
}  // namespace tutti::topology::hwloc
