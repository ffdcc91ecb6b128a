// Writes MSCCL XML, as formats/plan_file.h reads it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// Out of place, with one channel: a thread block per peer and direction, and one for local work, so that every send is
/// posted as early as its data allow. Errors: invalid_argument, if MSCCL has no such collective or the schedule cannot
/// be made step by step (lowers_to slots).
Result<std::string> export_msccl(const Schedule& schedule, std::string_view name);

}  // namespace tutti::formats
