#include "place/job_map.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/printable.h"
#include "place/packed_words.h"

namespace tutti {
namespace {

using Word = std::uint32_t;
constexpr std::size_t header_words = 4;
constexpr std::size_t levels_max = 16;
constexpr std::size_t numbers_of_rings_max = 12 * 1024;  // levels and the order included

Error refused(std::string what) {
  return {.code = Code::remote, .what = "rank 0's map of the job: " + std::move(what)};
}

std::size_t words_max(std::size_t ranks) {
  return header_words + (levels_max + 1 + rings_max + (ranks <= paired_ranks_max ? ranks : 0)) * ranks;
}

/// The first ones of a list of ranks.
std::string begin_of(std::span<const Rank> ranks, std::size_t shown) {
  return fmt::format("{}{}", joined(ranks.first(std::min(shown, ranks.size())), " "), ranks.size() > shown ? " …" : "");
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

std::size_t rings_that_fit(const JobMap& map, std::size_t ranks) {
  if (ranks == 0) return 0;
  const std::size_t lists = numbers_of_rings_max / ranks, others = map.levels.size() + 1;
  const std::size_t fit = lists > others ? std::min(lists - others, rings_max) : 0;
  return fit < 2 ? 0 : fit;
}

std::vector<std::byte> to_bytes(const JobMap& map) {
  std::vector<Word> words = {static_cast<Word>(map.levels.size()), map.order.empty() ? 0u : 1u,
                             static_cast<Word>(map.rings.size()), map.pair_mbps.empty() ? 0u : 1u};
  for (const Level& level : map.levels)
    for (const int group : level) words.push_back(static_cast<Word>(group));
  for (const Rank rank : map.order) words.push_back(static_cast<Word>(rank));
  for (const auto& ring : map.rings)
    for (const Rank rank : ring) words.push_back(static_cast<Word>(rank));
  words.insert(words.end(), map.pair_mbps.begin(), map.pair_mbps.end());
  return packed(words);
}

std::size_t map_bytes_max(int ranks) {
  constexpr std::size_t word_bytes_max = 6;  // packed: five for a difference, one for what says that it is one
  return word_bytes_max * words_max(static_cast<std::size_t>(ranks));
}

Result<JobMap> read_job_map(std::span<const std::byte> bytes, int ranks) {
  const auto each = static_cast<std::size_t>(ranks);
  auto unpacked_words = unpacked(bytes, words_max(each));
  if (!unpacked_words) return refused(unpacked_words.error().what);
  const std::vector<Word> words = *std::move(unpacked_words);
  if (words.size() < header_words) return refused("it is cut off");
  const std::size_t levels = words[0], orders = words[1], rings = words[2], rates = words[3];
  if (levels > levels_max || orders > 1 || rings > rings_max || rates > (each <= paired_ranks_max ? 1 : 0) ||
      words.size() != header_words + (levels + orders + rings + rates * each) * each)
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
  map.order.assign(next, next + static_cast<std::ptrdiff_t>(orders * each));
  next += static_cast<std::ptrdiff_t>(map.order.size());
  if (!names_every_rank(map.order)) return refused("an order that does not name every rank once");
  for (std::size_t i = 0; i < rings; ++i, next += ranks) {
    map.rings.emplace_back(next, next + ranks);
    if (!names_every_rank(map.rings.back())) return refused("a ring that does not name every rank once");
  }
  map.pair_mbps.assign(next, words.end());
  return map;
}

std::string text_of(const JobMap& map) {
  constexpr std::size_t shown = 32, shown_of_rings = 16;
  std::vector<std::string> levels;
  for (const Level& level : map.levels) levels.push_back(fmt::format("{} groups", groups_in(level)));
  std::string text = levels.empty() ? "one group" : joined(levels, ", then ");
  if (!map.order.empty()) text += "; order " + begin_of(map.order, shown);
  if (map.rings.empty()) return text;
  std::vector<std::string> rings;
  for (const auto& ring : map.rings) rings.push_back(begin_of(ring, shown_of_rings));
  return text + fmt::format("; {} rings: {}", rings.size(), joined(rings, " | "));
}

}  // namespace tutti
