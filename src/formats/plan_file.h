// A file that holds a plan, in whichever of the forms that are read.
#pragma once

#include <string_view>

#include "formats/imported.h"

namespace tutti::formats {

/// MSCCL XML or MSCCL++ JSON, told apart by the first character. `root`: as in import_msccl. Errors: as theirs.
Result<Imported> import_plan(std::string_view text, Rank root = 0);

}  // namespace tutti::formats
