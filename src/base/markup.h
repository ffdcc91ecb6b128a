// Text inside XML and SVG.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

/// Escapes the text of an element, or the value of an attribute in double quotes. Names come from files: characters
/// that XML does not allow, such as control characters, and invalid UTF-8 become a question mark.
std::string escaped(std::string_view text);

/// Length in bytes of the non-ASCII letter at `at`, in UTF-8; 0: not a letter that `escaped` keeps.
std::size_t letter_bytes(std::string_view text, std::size_t at);

}  // namespace tutti
