// What a schedule costs, counted: to be compared with the closed forms of its paper.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "support/shapes.h"

namespace tutti::testing {

inline bool is_power_of_two(int n) {
  return std::has_single_bit(static_cast<unsigned>(n));
}
inline int log2_up(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}
inline int log2_down(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
}
/// Steps in which a factor of `radix` covers n.
inline int log_up(int n, int radix) {
  int steps = 0;
  for (int reached = 1; reached < n; reached *= radix) ++steps;
  return steps;
}

inline bool supported(std::string_view name, Collective collective, int ranks) {
  return find_algorithm(name, {.collective = collective, .ranks = ranks}) != nullptr;
}

inline Schedule built(std::string_view name, Collective collective, int ranks, Rank root = 0) {
  const Shape shape{.collective = collective, .ranks = ranks, .root = root};
  const Algorithm* algorithm = find_algorithm(name, shape);
  EXPECT_NE(algorithm, nullptr) << name << ", " << text(shape);
  return algorithm->build(shape);
}

/// Messages of a schedule: step, from, to → the blocks it carries, as the sender names them.
inline std::map<std::tuple<int, Rank, Rank>, std::vector<int>> messages(const Schedule& schedule) {
  std::map<std::tuple<int, Rank, Rank>, std::vector<int>> all;
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) all[{t.step, t.from, t.to}].push_back(t.src.block);
  return all;
}

/// Blocks the busiest rank sends.
inline int blocks_sent(const Schedule& schedule) {
  std::vector<int> sent(static_cast<std::size_t>(schedule.ranks()));
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) ++sent[static_cast<std::size_t>(t.from)];
  return std::ranges::max(sent);
}

/// Messages the busiest rank sends in one step.
inline int messages_per_step(const Schedule& schedule) {
  std::map<std::pair<int, Rank>, int> sent;
  int most = 0;
  for (const auto& [message, blocks] : messages(schedule)) {
    const auto [step, from, to] = message;
    most = std::max(most, ++sent[{step, from}]);
  }
  return most;
}

/// Blocks in the largest message.
inline int blocks_per_message(const Schedule& schedule) {
  std::size_t most = 0;
  for (const auto& [message, blocks] : messages(schedule)) most = std::max(most, blocks.size());
  return static_cast<int>(most);
}

}  // namespace tutti::testing
