// The version of tutti.
#pragma once

namespace tutti {

/// TUTTI_VERSION for the layers below the C API, which do not include its header. Ranks of different versions do not
/// join.
inline constexpr int library_version = 100;

}  // namespace tutti
