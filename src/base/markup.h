// Text inside XML and SVG.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

/// As the text of an element or the value of an attribute in double quotes. Names come from files: what XML does not
/// take, as control characters and what is no UTF-8, becomes a question mark.
std::string escaped(std::string_view text);

/// How many bytes of `text` from `at` on are one letter beyond ASCII, in UTF-8; 0: none that `escaped` keeps.
std::size_t letter_bytes(std::string_view text, std::size_t at);

}  // namespace tutti
