// Text for messages, logs and terminals: of others, made fit for them, and of lists.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tutti {

enum class Lines { one, several };

/// Control characters and invalid UTF-8 become "\x1b"; with several lines, line ends stay. Looks at most at `bytes_max`
/// bytes of `text`; a truncated text ends in "…". Applying it again changes nothing.
std::string printable(std::string_view text, std::size_t bytes_max, Lines lines = Lines::one);

/// The items of `list` with `between` after each but the last: joined({1, 2, 3}, ", ") is "1, 2, 3". As fmt::join,
/// which takes two seconds to compile in each source that calls it.
template <std::ranges::input_range List>
std::string joined(const List& list, std::string_view between) {
  std::string text;
  for (bool first = true; const auto& item : list) {
    if (!std::exchange(first, false)) text += between;
    if constexpr (std::is_convertible_v<decltype(item), std::string_view>)
      text += std::string_view(item);
    else
      text += fmt::format("{}", item);
  }
  return text;
}

}  // namespace tutti
