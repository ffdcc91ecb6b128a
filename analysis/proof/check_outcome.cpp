// Determines step by step what a schedule leaves in every output block.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/proof/check_memory.h"
#include "analysis/proof/check_terms.h"

namespace tutti::proof {
namespace {

using Id = Terms::Id;

/// A value that is about to be written to a block.
struct Landing {
  Cell* cell = nullptr;
  Id term = Terms::undefined;
  const Transfer* transfer = nullptr;
};

Error wrong(const Transfer& t, std::string_view what) {
  return Error{.code = Code::internal,
               .what = fmt::format("schedule: transfer from rank {} to rank {}: {}", t.from, t.to, what),
               .peer = t.to,
               .step = t.step};
}

Result<void> land(std::span<const Landing> landings, Terms& terms) {
  std::vector<Id> operands;
  for (std::size_t i = 0; i < landings.size();) {
    const Landing& first = landings[i];
    operands.clear();
    for (; i < landings.size() && landings[i].cell == first.cell; ++i) {
      if (!operands.empty() && (landings[i].transfer->kind == Kind::copy || first.transfer->kind == Kind::copy))
        return wrong(*landings[i].transfer, "a second write of one block in one step");
      operands.push_back(landings[i].term);
    }
    first.cell->term = first.transfer->kind == Kind::copy ? operands[0] : terms.chained(operands);
  }
  return {};
}

/// Reads the operands of all transfers of a step before any of them is written.
Result<void> step(std::span<const Transfer> transfers, Memory& memory, const Schedule& schedule, Terms& terms) {
  const auto has = [&](Rank rank, Ref ref) {
    return rank >= 0 && rank < schedule.ranks() && ref.block >= 0 && ref.block < memory.blocks(rank, ref.buffer);
  };
  std::vector<Landing> landings;
  landings.reserve(transfers.size());
  for (const Transfer& t : transfers) {
    if (!has(t.from, t.src) || !has(t.to, t.dst)) return wrong(t, "block out of range");
    if (t.src.block % schedule.parts() != t.dst.block % schedule.parts()) return wrong(t, "joins blocks of two parts");
    const Id term = memory.at(t.from, t.src.buffer, t.src.block, 0).term;
    if (term == Terms::undefined) return wrong(t, "reads a block that has no content");
    landings.push_back({&memory.at(t.to, t.dst.buffer, t.dst.block, 0), term, &t});
  }
  std::ranges::stable_sort(landings, {}, [](const Landing& l) { return std::pair(l.cell, l.transfer->order); });
  return land(landings, terms);
}

}  // namespace

Result<std::vector<std::vector<Id>>> outcome(const Schedule& schedule, Terms& terms) {
  Memory memory(schedule, /*tiles=*/1, /*in_place=*/{});
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < memory.blocks(rank, Buffer::input); ++block)
      memory.at(rank, Buffer::input, block, 0).term = terms.contribution(rank, block);
  Result<void> right;
  for_each_step(schedule, [&](std::span<const Transfer> transfers) {
    if (right) right = step(transfers, memory, schedule, terms);
  });
  TUTTI_TRY(std::move(right));

  std::vector<std::vector<Id>> outputs(static_cast<std::size_t>(schedule.ranks()));
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < memory.blocks(rank, Buffer::output); ++block) {
      const Id term = memory.at(rank, Buffer::output, block, 0).term;
      if (!terms.complete(term, rank, block))
        return Error{.code = Code::internal,
                     .what = fmt::format("schedule: output block {} ends as {}", block, terms.text(term)),
                     .peer = rank};
      outputs[static_cast<std::size_t>(rank)].push_back(term);
    }
  return outputs;
}

}  // namespace tutti::proof
