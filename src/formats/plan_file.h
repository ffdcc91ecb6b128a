// Reads a plan file in any supported format.
#pragma once

#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// MSCCL XML or MSCCL++ JSON, distinguished by the first character. `root`: as in import_msccl. Errors: those of both
/// formats.
Result<Imported> import_plan(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
