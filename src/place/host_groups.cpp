#include "place/host_groups.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace tutti {
namespace {

/// FNV-1a, continued; never 0, which means none.
std::uint64_t hash_on(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash == 0 ? 1 : hash;
}
constexpr std::uint64_t hash_start = 0xcbf29ce484222325U;

/// The parts of a text between separators, the last one with all that is left if there are more than `most`.
std::vector<std::string_view> parts_of(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most) {
    const std::size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

/// Of the innermost names, each with those around it.
HostGroups groups_of(std::span<const std::string_view> names) {
  HostGroups groups{};
  const std::size_t left_out = names.size() > groups.size() ? names.size() - groups.size() : 0;
  std::uint64_t hash = hash_start;
  for (std::size_t i = 0; i < names.size(); ++i) {
    hash = hash_on(hash_on(hash, names[i]), "/");
    if (i >= left_out) groups[i - left_out] = hash;
  }
  return groups;
}

}  // namespace

Result<HostGroups> host_groups(std::string_view setting) {
  if (setting.empty()) return HostGroups{};
  const auto names = parts_of(setting, '/', setting.size() + 1);
  if (names.size() > host_groups_max || std::ranges::find(names, std::string_view()) != names.end())
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("TUTTI_TOPO_GROUPS={}: expected up to {} names with / between them, the outermost "
                                     "first, such as pod2/rack7",
                                     setting, host_groups_max)};
  return groups_of(names);
}

HostGroups host_groups_of_slurm(std::string_view address, std::string_view pattern) {
  const auto kinds = parts_of(pattern, '.', pattern.size() + 1);
  auto names = parts_of(address, '.', kinds.size());  // the name of the node may have dots
  if (kinds.back() != "node" || names.size() != kinds.size()) return {};
  names.pop_back();
  return groups_of(names);
}

std::vector<std::array<int, host_groups_max>> numbered(std::span<const HostGroups> told, std::span<const int> hosts) {
  std::array<std::map<std::uint64_t, int>, host_groups_max> numbers;
  std::vector<std::array<int, host_groups_max>> groups;
  for (const int first : hosts) {
    auto& own = groups.emplace_back();
    for (std::size_t depth = 0; depth < own.size(); ++depth)
      own[depth] =
          numbers[depth]
              .try_emplace(told[static_cast<std::size_t>(first)][depth], static_cast<int>(numbers[depth].size()))
              .first->second;
  }
  return groups;
}

}  // namespace tutti
