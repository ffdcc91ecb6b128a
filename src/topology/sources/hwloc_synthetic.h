// Checks descriptions of synthetic machines before hwloc reads them.
#pragma once

#include <string_view>

#include "base/error.h"
#include "topology/sources/hwloc_library.h"

namespace tutti::topology {

/// Succeeds for hwloc(7)'s synthetic descriptions: "pack:2 [numa(memory=1GB)] l3:2 core:4 pu:2", of 1 to 1024
/// characters, at most 32 levels and 65536 objects per level. For some of the refused texts hwloc 2.9 itself leaks
/// memory, reads uninitialised memory or aborts. Loops of indexes may name only levels in the text. Errors:
/// invalid_argument (with the position in the text).
Result<void> check_synthetic(const HwlocLibrary& hwloc, std::string_view text);

}  // namespace tutti::topology
