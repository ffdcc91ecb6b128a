// Determines step by step what a schedule leaves in every output block.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/proof/check_terms.h"

namespace tutti::proof {
namespace {

using Id = Terms::Id;

/// A value that is about to be written to a block.
struct Landing {
  std::size_t cell = 0;
  int order = 0;
  Id term = Terms::undefined;
  const Transfer* transfer = nullptr;
};

/// All blocks of all ranks while the schedule runs.
class Blocks {
 public:
  Blocks(const Schedule& schedule, const Terms& terms) : schedule_(schedule) {
    std::size_t cells = 0;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank)
      for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        first_.push_back(cells);
        cells += static_cast<std::size_t>(blocks(rank, buffer));
      }
    first_.push_back(cells);
    terms_.assign(cells, Terms::undefined);
    for (Rank rank = 0; rank < schedule.ranks(); ++rank)
      for (int block = 0; block < blocks(rank, Buffer::input); ++block)
        terms_[cell(rank, {Buffer::input, block})] = terms.contribution(rank, block);
  }

  int blocks(Rank rank, Buffer buffer) const {
    const Collective collective = schedule_.collective();
    const int ranks = schedule_.ranks();
    const Rank root = schedule_.root();
    const int groups = buffer == Buffer::input    ? input_groups(collective, ranks, rank, root)
                       : buffer == Buffer::output ? output_groups(collective, ranks, rank, root)
                                                  : schedule_.scratch_groups();
    return groups * schedule_.parts();
  }
  bool has(Rank rank, Ref ref) const {
    return rank >= 0 && rank < schedule_.ranks() && ref.block >= 0 && ref.block < blocks(rank, ref.buffer);
  }
  std::size_t cell(Rank rank, Ref ref) const {
    return first_[3 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(ref.buffer)] +
           static_cast<std::size_t>(ref.block);
  }
  Id& at(std::size_t cell) { return terms_[cell]; }
  Id at(Rank rank, Ref ref) const { return terms_[cell(rank, ref)]; }

 private:
  const Schedule& schedule_;
  std::vector<std::size_t> first_;  // by 3 · rank + buffer
  std::vector<Id> terms_;
};

Error wrong(const Transfer& t, std::string_view what) {
  return Error{.code = Code::internal,
               .what = fmt::format("schedule: transfer from rank {} to rank {}: {}", t.from, t.to, what),
               .peer = t.to,
               .step = t.step};
}

/// Reads the operands of all transfers of a step before any of them is written.
Result<std::vector<Landing>> depart(std::span<const Transfer* const> step, const Blocks& blocks, int parts) {
  std::vector<Landing> landings;
  landings.reserve(step.size());
  for (const Transfer* t : step) {
    if (!blocks.has(t->from, t->src) || !blocks.has(t->to, t->dst)) return wrong(*t, "block out of range");
    if (t->src.block % parts != t->dst.block % parts) return wrong(*t, "joins blocks of two parts");
    const Id term = blocks.at(t->from, t->src);
    if (term == Terms::undefined) return wrong(*t, "reads a block that has no content");
    landings.push_back({blocks.cell(t->to, t->dst), t->order, term, t});
  }
  std::stable_sort(landings.begin(), landings.end(), [](const Landing& a, const Landing& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.order < b.order;
  });
  return landings;
}

Result<void> land(std::span<const Landing> landings, Blocks& blocks, Terms& terms) {
  std::vector<Id> operands;
  for (std::size_t i = 0; i < landings.size();) {
    const Landing& first = landings[i];
    operands.clear();
    for (; i < landings.size() && landings[i].cell == first.cell; ++i) {
      if (!operands.empty() && (landings[i].transfer->kind == Kind::copy || first.transfer->kind == Kind::copy))
        return wrong(*landings[i].transfer, "a second write of one block in one step");
      operands.push_back(landings[i].term);
    }
    blocks.at(first.cell) = first.transfer->kind == Kind::copy ? operands[0] : terms.chained(operands);
  }
  return {};
}

}  // namespace

Result<std::vector<std::vector<Id>>> outcome(const Schedule& schedule, Terms& terms) {
  std::vector<const Transfer*> order;
  order.reserve(schedule.transfers().size());
  for (const Transfer& t : schedule.transfers()) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const Transfer* a, const Transfer* b) { return a->step < b->step; });

  Blocks blocks(schedule, terms);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && order[end]->step == order[begin]->step) ++end;
    const auto landings = TUTTI_TRY(depart({order.data() + begin, end - begin}, blocks, schedule.parts()));
    TUTTI_TRY(land(landings, blocks, terms));
    begin = end;
  }

  std::vector<std::vector<Id>> outputs(static_cast<std::size_t>(schedule.ranks()));
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < blocks.blocks(rank, Buffer::output); ++block) {
      const Id term = blocks.at(rank, {Buffer::output, block});
      if (!terms.complete(term, rank, block))
        return Error{.code = Code::internal,
                     .what = fmt::format("schedule: output block {} ends as {}", block, terms.text(term)),
                     .peer = rank};
      outputs[static_cast<std::size_t>(rank)].push_back(term);
    }
  return outputs;
}

}  // namespace tutti::proof
