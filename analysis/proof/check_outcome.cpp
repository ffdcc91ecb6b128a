// Determines step by step what a schedule leaves in every output block.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/proof/check_memory.h"
#include "analysis/proof/check_terms.h"

namespace tutti::proof {
namespace {

using Id = Terms::Id;

/// A value that is about to be written to a block.
struct Landing {
  Cell* cell = nullptr;
  int order = 0;
  Id term = Terms::undefined;
  const Transfer* transfer = nullptr;
};

Error wrong(const Transfer& t, std::string_view what) {
  return Error{.code = Code::internal,
               .what = fmt::format("schedule: transfer from rank {} to rank {}: {}", t.from, t.to, what),
               .peer = t.to,
               .step = t.step};
}

/// Reads the operands of all transfers of a step before any of them is written.
Result<std::vector<Landing>> depart(std::span<const Transfer* const> step, Memory& memory, const Schedule& schedule) {
  const auto has = [&](Rank rank, Ref ref) {
    return rank >= 0 && rank < schedule.ranks() && ref.block >= 0 && ref.block < memory.blocks(rank, ref.buffer);
  };
  std::vector<Landing> landings;
  landings.reserve(step.size());
  for (const Transfer* t : step) {
    if (!has(t->from, t->src) || !has(t->to, t->dst)) return wrong(*t, "block out of range");
    if (t->src.block % schedule.parts() != t->dst.block % schedule.parts())
      return wrong(*t, "joins blocks of two parts");
    const Id term = memory.at(t->from, t->src.buffer, t->src.block, 0).term;
    if (term == Terms::undefined) return wrong(*t, "reads a block that has no content");
    landings.push_back({&memory.at(t->to, t->dst.buffer, t->dst.block, 0), t->order, term, t});
  }
  std::stable_sort(landings.begin(), landings.end(), [](const Landing& a, const Landing& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.order < b.order;
  });
  return landings;
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

}  // namespace

Result<std::vector<std::vector<Id>>> outcome(const Schedule& schedule, Terms& terms) {
  std::vector<const Transfer*> order;
  order.reserve(schedule.transfers().size());
  for (const Transfer& t : schedule.transfers()) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const Transfer* a, const Transfer* b) { return a->step < b->step; });

  Memory memory(schedule, /*tiles=*/1, /*in_place=*/{});
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < memory.blocks(rank, Buffer::input); ++block)
      memory.at(rank, Buffer::input, block, 0).term = terms.contribution(rank, block);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && order[end]->step == order[begin]->step) ++end;
    const auto landings = TUTTI_TRY(depart({order.data() + begin, end - begin}, memory, schedule));
    TUTTI_TRY(land(landings, terms));
    begin = end;
  }

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
