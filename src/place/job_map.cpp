#include "place/job_map.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti {
namespace {

using Word = std::uint32_t;
constexpr std::size_t header_words = 2;
constexpr std::size_t levels_max = 16;

Error refused(std::string what) {
  return {.code = Code::remote, .what = "rank 0's map of the job: " + std::move(what)};
}

bool names_every_rank(std::span<const Rank> order) {
  std::vector<bool> named(order.size());
  for (const Rank rank : order) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= order.size() || named[static_cast<std::size_t>(rank)])
      return false;
    named[static_cast<std::size_t>(rank)] = true;
  }
  return true;
}

/// Ranks that are together in `inner` are together in `outer`.
bool divides(const Level& outer, const Level& inner) {
  std::vector<int> within(inner.size(), -1);
  for (std::size_t rank = 0; rank < inner.size(); ++rank) {
    int& known = within[static_cast<std::size_t>(inner[rank])];
    if (known >= 0 && known != outer[rank]) return false;
    known = outer[rank];
  }
  return true;
}

int groups_in(const Level& level) {
  return level.empty() ? 0 : *std::ranges::max_element(level) + 1;
}

}  // namespace

std::vector<std::byte> to_bytes(const JobMap& map) {
  std::vector<Word> words = {static_cast<Word>(map.levels.size()), map.order.empty() ? 0u : 1u};
  for (const Level& level : map.levels)
    for (const int group : level) words.push_back(static_cast<Word>(group));
  for (const Rank rank : map.order) words.push_back(static_cast<Word>(rank));
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

Result<JobMap> read_job_map(std::span<const std::byte> bytes, int ranks) {
  const auto each = static_cast<std::size_t>(ranks);
  std::vector<Word> words(bytes.size() / sizeof(Word));
  if (bytes.size() % sizeof(Word) != 0 || words.size() < header_words) return refused("it is cut off");
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const std::size_t levels = words[0];
  if (levels > levels_max || words[1] > 1 || words.size() != header_words + (levels + words[1]) * each)
    return refused(fmt::format("{} numbers for {} ranks", words.size(), ranks));
  JobMap map;
  auto next = words.begin() + header_words;
  for (std::size_t i = 0; i < levels; ++i, next += ranks) {
    Level level(next, next + ranks);
    if (std::ranges::any_of(level, [&](int group) { return group < 0 || group >= ranks; }))
      return refused("a group that no rank can have");
    if (i > 0 && !divides(map.levels.back(), level)) return refused("a level that is not within the one before");
    map.levels.push_back(std::move(level));
  }
  map.order.assign(next, words.end());
  if (!names_every_rank(map.order)) return refused("an order that does not name every rank once");
  return map;
}

std::string text_of(const JobMap& map) {
  constexpr std::size_t shown = 32;
  std::vector<std::string> levels;
  for (const Level& level : map.levels) levels.push_back(fmt::format("{} groups", groups_in(level)));
  std::string text = levels.empty() ? "one group" : fmt::format("{}", fmt::join(levels, ", then "));
  if (map.order.empty()) return text;
  const auto begin = std::span(map.order).first(std::min(shown, map.order.size()));
  return text + fmt::format("; order {}{}", fmt::join(begin, " "), map.order.size() > shown ? " …" : "");
}

}  // namespace tutti
