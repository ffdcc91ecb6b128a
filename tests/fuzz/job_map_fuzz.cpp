// Any bytes as rank 0's map of the job. The first byte says of how many ranks.
#include <cstdio>
#include <cstdlib>
#include <span>

#include "fuzz/entry.h"
#include "place/job_map.h"
#include "place/packed_words.h"

namespace {

using namespace tutti;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::string text(int ranks, const JobMap& map) {
  std::string made(1, static_cast<char>(ranks));
  for (const std::byte byte : to_bytes(map)) made += static_cast<char>(byte);
  return made;
}

bool names_ranks(std::span<const int> list, int ranks) {
  for (const int rank : list)
    if (rank < 0 || rank >= ranks) return false;
  return list.size() == static_cast<std::size_t>(ranks);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int ranks = 1 + data[0];
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  constexpr std::size_t words_max = 3'000;
  if (const auto words = unpacked(bytes, words_max)) {
    expect(words->size() <= words_max, "more words than were allowed");
    const auto again = unpacked(packed(*words), words_max);
    expect(again && *again == *words, "words that are not unpacked again");
  }
  const auto map = read_job_map(bytes, ranks);
  if (!map) return expect(map.error().code == Code::remote, "a map refused with another code"), 0;
  for (const Level& level : map->levels) expect(names_ranks(level, ranks), "a group that no rank can have");
  expect(map->order.empty() || names_ranks(map->order, ranks), "an order of others");
  for (const auto& ring : map->rings) expect(names_ranks(ring, ranks), "a ring of others");
  const auto again = read_job_map(to_bytes(*map), ranks);
  expect(again && *again == *map, "a map that is not read again");
  (void)text_of(*map);
  return 0;
}

std::vector<std::string> fuzz_examples() {
  const JobMap four{
      .levels = {{0, 0, 1, 1}, {0, 1, 2, 2}}, .order = {0, 2, 1, 3}, .rings = {{0, 1, 2, 3}, {1, 0, 3, 2}}};
  const JobMap rates{.pair_mbps = {0, 1000, 2000, 3000, 0, 500, 600, 700, 0}};
  JobMap in_turn{.levels = {{}}};
  for (int rank = 0; rank < 64; ++rank) {
    in_turn.levels[0].push_back(rank % 8);
    in_turn.order.push_back(rank % 8 * 8 + rank / 8);
  }
  return {text(3, four), text(2, rates), text(63, in_turn), text(0, {})};
}
