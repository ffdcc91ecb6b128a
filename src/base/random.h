// Random bytes that cannot be guessed.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace tutti {

/// Fills `bytes` from the system's random source. Errors: system.
Result<void> fill_random(std::span<std::byte> bytes);

}  // namespace tutti
