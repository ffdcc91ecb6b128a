// Which source this library was built from, as far as ranks must have it in common.
#pragma once

#include <cstdint>

namespace tutti {

/// A digest of the code that lays out what ranks share and send (areas, call descriptors, frames), and by which each
/// makes for itself the plans that must fit together. Comments and compilers make no difference. Computed at build time
/// (cmake/source_digest.cmake).
extern const std::uint64_t source_digest;

}  // namespace tutti
