// What a schedule computes, bit for bit, but not how its data travel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "plan/schedule.h"

namespace tutti::testing {

/// One number for every output block of every rank: equal where the same contributions are reduced by the same passes.
/// A pass over two operands is the same either way round; one over more is not, and copies do not count. Meaning::order
/// is stricter: it tells apart what a format may not be able to say.
inline std::vector<std::uint64_t> results(const Schedule& schedule) {
  using Block = std::tuple<Rank, Buffer, int>;
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u ^ b;
    x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
    return x ^ (x >> 32);
  };
  std::map<Block, std::uint64_t> held;
  const int n = schedule.ranks(), parts = schedule.parts();
  for (Rank rank = 0; rank < n; ++rank)
    for (int b = 0; b < input_groups(schedule.collective(), n, rank, schedule.root()) * parts; ++b)
      held[{rank, Buffer::input, b}] = mix(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(b) + 1);

  const auto pass = [&](std::vector<std::uint64_t> operands) {
    if (operands.size() == 2) std::ranges::sort(operands);
    std::uint64_t tree = operands.size();
    for (const std::uint64_t operand : operands) tree = mix(tree, operand);
    return operands.size() == 1 ? operands[0] : tree;
  };
  const std::vector<Transfer>& all = schedule.transfers();
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(), [&](const Transfer& t) { return t.step != begin->step; });
    std::map<Block, std::map<int, std::uint64_t>> landing;  // operands by order
    for (auto t = begin; t != end; ++t)
      landing[{t->to, t->dst.buffer, t->dst.block}][t->order] = held.at({t->from, t->src.buffer, t->src.block});
    for (const auto& [block, by_order] : landing) {
      std::vector<std::uint64_t> operands;
      for (const auto& [order, value] : by_order) {
        if (operands.size() == limits::sources_max) operands = {pass(operands)};
        operands.push_back(value);
      }
      held[block] = pass(operands);
    }
    begin = end;
  }

  std::vector<std::uint64_t> outputs;
  for (Rank rank = 0; rank < n; ++rank)
    for (int b = 0; b < output_groups(schedule.collective(), n, rank, schedule.root()) * parts; ++b)
      outputs.push_back(held[{rank, Buffer::output, b}]);
  return outputs;
}

}  // namespace tutti::testing
