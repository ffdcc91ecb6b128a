// Which build of the library this is.
#pragma once

#include <string>

namespace tutti {

/// The identifier that the linker has given to the library or program that contains this function, in hexadecimal;
/// empty if it has none. Equal for equal code.
std::string build_id();

}  // namespace tutti
