// Reads memory of another process that is not mapped in this process (CMA).
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace tutti {

/// Copies from address `from` of process `pid`. Errors: remote (the process has ended, forbids access, or has no such
/// memory).
Result<void> pull(int pid, const std::byte* from, std::span<std::byte> into);

}  // namespace tutti
