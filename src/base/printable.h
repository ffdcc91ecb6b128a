// Text that somebody else sent, made fit for messages, logs and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

enum class Lines { one, several };

/// Control characters and what is no UTF-8 become "\x1b"; of several lines the ends stay. At most `bytes_max` of `text`
/// are looked at; what is cut off shows as "…". Said again, it stays as it is.
std::string printable(std::string_view text, std::size_t bytes_max, Lines lines = Lines::one);

}  // namespace tutti
