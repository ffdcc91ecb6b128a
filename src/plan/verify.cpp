// Proves that a schedule computes its collective: follows every contribution through all steps, symbolically.
#include "plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "plan/cells.h"
#include "plan/verify_loss.h"
#include "plan/verify_terms.h"

namespace tutti {
namespace {

using Id = ContributionTrees::Id;
constexpr Id nothing = ContributionTrees::nothing;

/// Executes the steps over the terms of all blocks.
class Proof {
 public:
  explicit Proof(const Schedule& schedule);
  Result<void> run();
  Result<Meaning> meaning(const NameOfWrite& name);

 private:
  /// A value that is about to be written to a block.
  struct Landing {
    const Transfer* transfer = nullptr;
    Id term = nothing;
    std::uint32_t before = none;  // index of the landing in the same cell that was found before
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  int blocks(Rank rank, Buffer buffer) const { return cells_.blocks(rank, buffer); }
  bool has_rank(Rank rank) const { return rank >= 0 && rank < schedule_.ranks(); }
  Result<void> step(std::span<const Transfer> transfers);
  std::string refs_wrong(const Transfer& t) const;
  bool refs_right(const Transfer& t) const;
  bool overwritten_in_place(Rank rank, Ref src) const;
  Result<void> land(std::size_t cell);
  Contribution only_input(Rank rank, int block) const;
  int summed_block(Rank rank, int block) const;
  bool is_right(Id term, Rank rank, int block) const;
  std::string why_wrong(Id term, Rank rank, int block, const NameOfWrite& name) const;
  std::string why_not_reduced() const;
  bool alike_everywhere() const;
  bool in_rank_order();

  const Schedule& schedule_;
  ContributionTrees trees_;
  Cells cells_;
  std::vector<Id> terms_;               // by cell
  std::vector<std::uint32_t> landing_;  // by cell: its last landing in this step
  std::vector<Landing> landings_;       // of this step
  std::vector<Landing> meeting_;        // the landings in one cell, in order
  std::vector<Id> operands_;
};

Proof::Proof(const Schedule& schedule)
    : schedule_(schedule),
      trees_(schedule),
      cells_(schedule, /*in_place=*/false),
      terms_(cells_.size(), nothing),
      landing_(cells_.size(), none) {
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < blocks(rank, Buffer::input); ++block)
      terms_[cells_.at(rank, {Buffer::input, block})] = trees_.leaf(rank, block);
}

Error wrong(Rank rank, int step, std::string what) {
  return Error{.code = Code::internal, .what = std::move(what), .peer = rank, .step = step};
}

Result<void> Proof::run() {
  Result<void> right;
  for_each_step(schedule_, [&](std::span<const Transfer> transfers) {
    if (right) right = step(transfers);
  });
  return right;
}

/// All sources are read before anything is written.
Result<void> Proof::step(std::span<const Transfer> transfers) {
  landings_.clear();
  for (const Transfer& t : transfers) {
    if (!refs_right(t)) return wrong(has_rank(t.to) ? t.to : -1, t.step, refs_wrong(t));
    const Id term = terms_[cells_.at(t.from, t.src)];
    if (term == nothing)
      return wrong(t.from, t.step, fmt::format("{} is read before anything is written to it", text(t.src)));
    if (overwritten_in_place(t.from, t.src))
      return wrong(t.from, t.step, fmt::format("{} is read after its place was written, in place", text(t.src)));
    const std::size_t at = cells_.at(t.to, t.dst);
    const auto number = static_cast<std::uint32_t>(landings_.size());
    landings_.push_back({.transfer = &t, .term = term, .before = std::exchange(landing_[at], number)});
  }
  for (const Transfer& t : transfers) {
    const std::size_t at = cells_.at(t.to, t.dst);
    if (landing_[at] == none) continue;  // handled together with another landing
    TUTTI_TRY(land(at));
    landing_[at] = none;
  }
  return {};
}

bool Proof::refs_right(const Transfer& t) const {
  if (!has_rank(t.from) || !has_rank(t.to)) return false;
  if (t.src.block < 0 || t.src.block >= blocks(t.from, t.src.buffer)) return false;
  if (t.dst.block < 0 || t.dst.block >= blocks(t.to, t.dst.buffer) || t.dst.buffer == Buffer::input) return false;
  return t.src.block == t.dst.block || t.src.block % schedule_.parts() == t.dst.block % schedule_.parts();
}

/// Why the transfer's two blocks do not fit together; empty if they do.
std::string Proof::refs_wrong(const Transfer& t) const {
  if (!has_rank(t.from) || !has_rank(t.to)) return fmt::format("no such pair of ranks: {} to {}", t.from, t.to);
  if (t.src.block < 0 || t.src.block >= blocks(t.from, t.src.buffer))
    return fmt::format("rank {} has no {}", t.from, text(t.src));
  if (t.dst.block < 0 || t.dst.block >= blocks(t.to, t.dst.buffer))
    return fmt::format("rank {} has no {}", t.to, text(t.dst));
  if (t.dst.buffer == Buffer::input) return fmt::format("{} is written", text(t.dst));
  return fmt::format("{} and {} are blocks of two parts", text(t.src), text(t.dst));
}

/// A copy of the input onto itself changes nothing, unless reading scales it.
bool Proof::overwritten_in_place(Rank rank, Ref src) const {
  if (src.buffer != Buffer::input) return false;
  const Schedule& s = schedule_;
  const int same = in_place_block(s.collective(), s.ranks(), s.parts(), rank, s.root(), src.block);
  if (same < 0) return false;
  const Id over = terms_[cells_.at(rank, {Buffer::output, same})];
  if (over == nothing) return false;
  return reduces(s.collective()) || over != trees_.leaf(rank, src.block);
}

/// Writes one block: a copy, or the operands of a reduction.
Result<void> Proof::land(std::size_t at) {
  meeting_.clear();
  for (std::uint32_t i = landing_[at]; i != none; i = landings_[i].before) meeting_.push_back(landings_[i]);
  std::ranges::reverse(meeting_);
  const auto order = [](const Landing& l) { return l.transfer->order; };
  if (!std::ranges::is_sorted(meeting_, {}, order)) std::ranges::stable_sort(meeting_, {}, order);

  const Transfer& first = *meeting_[0].transfer;
  operands_.clear();
  for (std::size_t i = 0; i < meeting_.size(); ++i) {
    const Transfer& t = *meeting_[i].transfer;
    if (i > 0 && (t.kind == Kind::copy || first.kind == Kind::copy))
      return wrong(t.to, t.step, fmt::format("{} is written twice in one step", text(t.dst)));
    if (i > 0 && t.order == meeting_[i - 1].transfer->order)
      return wrong(t.to, t.step, fmt::format("two operands of {} have order {}", text(t.dst), t.order));
    if (t.kind == Kind::reduce && !reduces(schedule_.collective()))
      return wrong(t.to, t.step, fmt::format("{} reduces into {}", name(schedule_.collective()), text(t.dst)));
    operands_.push_back(meeting_[i].term);
  }
  terms_[at] = operands_.size() == 1 ? operands_[0] : trees_.reduced(operands_);
  if (terms_[at] == nothing)
    return wrong(first.to, first.step, fmt::format("{} {}", text(first.dst), why_not_reduced()));
  return {};
}

/// Why the operands are no reduction.
std::string Proof::why_not_reduced() const {
  for (const Id operand : operands_)
    if (trees_.block_of(operand) != trees_.block_of(operands_[0]))
      return fmt::format("mixes blocks, input blocks {} and {}", trees_.block_of(operands_[0]),
                         trees_.block_of(operand));
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    if (std::ranges::count_if(operands_, [&](Id operand) { return trees_.has(operand, rank); }) > 1)
      return fmt::format("counts a contribution twice, that of rank {}", rank);
  return "counts a contribution twice";
}

/// What `rank`'s output `block` is a copy of, if the collective does not reduce.
Contribution Proof::only_input(Rank rank, int block) const {
  const int parts = schedule_.parts();
  const int group = block / parts, part = block % parts;
  const CollectiveFacts& facts = facts_of(schedule_.collective());
  return {facts.input == Holders::root ? schedule_.root() : group,
          facts.input_groups == GroupCount::one ? part : rank * parts + part};
}

/// The input block that `rank`'s output `block` is a sum of, if the collective reduces.
int Proof::summed_block(Rank rank, int block) const {
  const int parts = schedule_.parts();
  return facts_of(schedule_.collective()).input_groups == GroupCount::one ? block : rank * parts + block % parts;
}

/// Whether `term` is what the collective must give in `rank`'s output `block`.
bool Proof::is_right(Id term, Rank rank, int block) const {
  const Collective collective = schedule_.collective();
  if (term == nothing) return false;
  if (prefixes(collective)) return trees_.is_prefix(term, block, ranks_combined(collective, schedule_.ranks(), rank));
  if (reduces(collective)) return trees_.is_total(term, summed_block(rank, block));
  const Contribution input = only_input(rank, block);
  return term == trees_.leaf(input.rank, input.block);
}

/// Of a block that is not right: what it has instead, what it lacks, and where that was lost.
std::string Proof::why_wrong(Id term, Rank rank, int block, const NameOfWrite& name) const {
  const bool written = term != nothing;
  if (!reduces(schedule_.collective())) {
    const Contribution input = only_input(rank, block);
    const auto [from, own] = written ? trees_.leaf_of(term) : std::pair<Rank, int>();
    return fmt::format("{}, and input block {} of rank {} is missing{}",
                       written ? fmt::format("it has input block {} of rank {}", own, from) : "it is never written",
                       input.block, input.rank, loss_text(schedule_, input, rank, block, name));
  }
  const int summed = summed_block(rank, block);
  const bool other = written && trees_.block_of(term) != summed;
  std::string before;
  if (!written) before = "it is never written, and ";
  if (other) before = fmt::format("it has input block {}, not {}, and ", trees_.block_of(term), summed);
  const int wanted = ranks_combined(schedule_.collective(), schedule_.ranks(), rank);
  for (Rank from = 0; from < wanted; ++from)
    if (!written || other || !trees_.has(term, from))
      return fmt::format("{}the contribution of rank {} is missing{}", before, from,
                         loss_text(schedule_, {from, summed}, rank, block, name));
  for (Rank from = wanted; from < schedule_.ranks(); ++from)
    if (trees_.has(term, from)) return fmt::format("the contribution of rank {} does not belong to it", from);
  return "its contributions are not in the order of ranks";
}

Result<Meaning> Proof::meaning(const NameOfWrite& name) {
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    for (int block = 0; block < blocks(rank, Buffer::output); ++block)
      if (const Id term = terms_[cells_.at(rank, {Buffer::output, block})]; !is_right(term, rank, block))
        return wrong(rank, -1,
                     fmt::format("output block {} ends wrong: {}", block, why_wrong(term, rank, block, name)));

  Meaning result{.order = {}, .same_bits = alike_everywhere(), .rank_order = in_rank_order()};
  const Rank last = schedule_.ranks() - 1;
  const Rank shown = prefixes(schedule_.collective()) ? last : blocks(0, Buffer::output) > 0 ? 0 : schedule_.root();
  for (int block = 0; block < blocks(shown, Buffer::output); ++block)
    result.order.push_back(trees_.hash(terms_[cells_.at(shown, {Buffer::output, block})]));
  return result;
}

/// Only an all-reduce may compute a block on several ranks; a rank with a copy has the original's tree.
bool Proof::alike_everywhere() const {
  if (schedule_.collective() != Collective::all_reduce) return true;
  for (Rank rank = 1; rank < schedule_.ranks(); ++rank)
    for (int block = 0; block < schedule_.parts(); ++block)
      if (terms_[cells_.at(rank, {Buffer::output, block})] != terms_[cells_.at(0, {Buffer::output, block})])
        return false;
  return true;
}

/// The tree must be the same for every block: the inputs of one block in rank order.
bool Proof::in_rank_order() {
  const Collective collective = schedule_.collective();
  if (!reduces(collective)) return true;
  operands_.clear();
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank) operands_.push_back(trees_.leaf(rank, 0));
  std::uint64_t expected = 0;
  int expected_of = 0;  // ranks
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    for (int block = 0; block < blocks(rank, Buffer::output); ++block) {
      const int combined = ranks_combined(collective, schedule_.ranks(), rank);
      if (combined != std::exchange(expected_of, combined))
        expected = trees_.hash(trees_.reduced(std::span(operands_).first(static_cast<std::size_t>(combined))));
      if (trees_.hash(terms_[cells_.at(rank, {Buffer::output, block})]) != expected) return false;
    }
  return true;
}

}  // namespace

Result<Meaning> verify(const Schedule& schedule, const NameOfWrite& name) {
  Proof proof(schedule);
  TUTTI_TRY(proof.run());
  return proof.meaning(name ? name : [](int step, Rank, Ref) { return fmt::format("in step {}", step); });
}

}  // namespace tutti
