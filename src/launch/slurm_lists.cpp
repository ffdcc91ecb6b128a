#include "launch/slurm_lists.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/printable.h"

namespace tutti {
namespace {

Error not_a_list(std::string_view what, std::string_view text) {
  return invalid_argument(fmt::format("\"{}\" is not a list of {}", printable(text, 200), what));
}

/// Removes a number from the front of `text`. False: there is none.
bool take_number(std::string_view& text, std::int64_t& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || value < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

/// Takes the first number of every bracket as it is written: leading zeros are part of the name.
Result<std::string> slurm_first_node(std::string_view nodes) {
  std::string name;
  std::string_view rest = nodes;
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      name += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    rest.remove_prefix(1);
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto close = rest.find(']');
    if (digits == 0 || close == std::string_view::npos || close < digits) return not_a_list("nodes", nodes);
    name += rest.substr(0, digits);
    rest.remove_prefix(close + 1);
  }
  if (name.empty() || name.size() > 255 || name.find(']') != std::string::npos) return not_a_list("nodes", nodes);
  return name;
}

Result<int> slurm_tasks_on_node(std::string_view tasks, int node) {
  std::string_view rest = tasks;
  std::int64_t before = 0;
  while (true) {
    std::int64_t count = 0;
    std::int64_t times = 1;
    if (!take_number(rest, count) || count > INT32_MAX) return not_a_list("tasks per node", tasks);
    if (take(rest, "(x") && (!take_number(rest, times) || times > INT32_MAX || !take(rest, ")")))
      return not_a_list("tasks per node", tasks);
    if (node >= before && node < before + times) return static_cast<int>(count);
    before += times;
    if (!take(rest, ",")) return not_a_list(fmt::format("tasks per node with a node {}", node), tasks);
  }
}

}  // namespace tutti
