// Reads memory of another process that is not mapped in this process (CMA).
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "base/host.h"

namespace tutti {

/// Copies from address `from` of the process. Errors: remote (it has ended or become another program, forbids access,
/// or has no such memory).
Result<void> pull(const ForeignProcess& process, const std::byte* from, std::span<std::byte> into);

}  // namespace tutti
