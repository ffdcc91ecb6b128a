// Makes text from others fit for messages, logs and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

enum class Lines { one, several };

/// Control characters and invalid UTF-8 become "\x1b"; with several lines, line ends stay. Looks at most at `bytes_max`
/// bytes of `text`; a truncated text ends in "…". Applying it again changes nothing.
std::string printable(std::string_view text, std::size_t bytes_max, Lines lines = Lines::one);

}  // namespace tutti
