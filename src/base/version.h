// Which tutti this is.
#pragma once

namespace tutti {

/// TUTTI_VERSION, which the layers below the C API do not see: ranks of different ones do not join.
inline constexpr int library_version = 100;

}  // namespace tutti
