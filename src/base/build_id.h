// Which version and build of the library this is.
#pragma once

#include <string>

namespace tutti {

/// TUTTI_VERSION for the layers below the C API, which do not include its header. Ranks of different versions do not
/// join.
inline constexpr int library_version = 100;

/// The identifier that the linker has given to the library or program that contains this function, in hexadecimal;
/// empty if it has none. Equal for equal code.
std::string build_id();

}  // namespace tutti
