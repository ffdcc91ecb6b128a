// Descriptions of synthetic machines, looked at before hwloc sees them.
#pragma once

#include <string_view>

#include "base/error.h"

namespace tutti::topology {

/// Success for what hwloc(7) calls a synthetic description: "pack:2 [numa(memory=1GB)] l3:2 core:4 pu:2", of 1 to 1024
/// characters, at most 32 levels and 65536 objects a level. hwloc 2.9 itself loses memory, reads what was never written
/// or aborts at some of the others. Loops of indexes name only levels that the text names.
/// Errors: invalid_argument, with the place in the text.
Result<void> check_synthetic(std::string_view text);

}  // namespace tutti::topology
