// Proves what a schedule means: follows every contribution through all steps, symbolically.
#include "plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/limits.h"

namespace tutti {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// What blocks hold: whose contributions, reduced in which tree of passes. Hash-consed, so equal trees have equal ids.
class TermTable {
 public:
  using Id = int;
  static constexpr Id nothing = -1;

  explicit TermTable(int ranks) : words_((static_cast<std::size_t>(ranks) + 63) / 64) {}

  Id leaf(Rank rank, int block) {
    const auto [at, is_new] = leaves_.try_emplace({rank, block}, static_cast<Id>(nodes_.size()));
    if (is_new) {
      Node node{.hash = mix(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(block)),
                .block = block,
                .contributions = 1,
                .ranks = std::vector<std::uint64_t>(words_)};
      node.ranks[static_cast<std::size_t>(rank) / 64] = std::uint64_t{1} << (rank % 64);
      nodes_.push_back(std::move(node));
    }
    return at->second;
  }

  /// One reduction, as the chain of passes it is carried out in; `nothing` if it mixes input blocks or counts a rank
  /// twice.
  Id reduced(std::span<const Id> operands) {
    std::vector<Id> pass;
    for (const Id operand : operands) {
      if (pass.size() == limits::sources_max) {
        const Id so_far = of_pass(pass);
        if (so_far == nothing) return nothing;
        pass = {so_far};
      }
      pass.push_back(operand);
    }
    return pass.size() == 1 ? pass[0] : of_pass(pass);
  }

  bool is_leaf(Id id, Rank rank, int block) const {
    const auto found = leaves_.find({rank, block});
    return found != leaves_.end() && found->second == id;
  }
  /// All ranks' contributions to `block`, each once.
  bool is_total(Id id, int block, int ranks) const {
    return id != nothing && at(id).block == block && at(id).contributions == ranks;
  }
  std::uint64_t hash(Id id) const { return at(id).hash; }

 private:
  struct Node {
    std::uint64_t hash = 0;
    int block = 0;
    int contributions = 0;
    std::vector<std::uint64_t> ranks;  // a bit for each contribution
  };
  const Node& at(Id id) const { return nodes_[static_cast<std::size_t>(id)]; }

  Id of_pass(const std::vector<Id>& operands) {
    if (const auto found = passes_.find(operands); found != passes_.end()) return found->second;
    Node node = at(operands[0]);
    node.hash = mix(node.hash, operands.size());
    for (const Id operand : std::span(operands).subspan(1)) {
      const Node& other = at(operand);
      if (other.block != node.block) return nothing;
      for (std::size_t word = 0; word < words_; ++word) {
        if (node.ranks[word] & other.ranks[word]) return nothing;
        node.ranks[word] |= other.ranks[word];
      }
      node.contributions += other.contributions;
      node.hash = mix(node.hash, other.hash);
    }
    nodes_.push_back(std::move(node));
    return passes_[operands] = static_cast<Id>(nodes_.size()) - 1;
  }

  std::size_t words_;
  std::vector<Node> nodes_;
  std::map<std::pair<Rank, int>, Id> leaves_;
  std::map<std::vector<Id>, Id> passes_;
};

using Id = TermTable::Id;

std::string text(Ref ref) {
  static constexpr std::string_view names[] = {"input", "output", "scratch"};
  return fmt::format("{} block {}", names[static_cast<int>(ref.buffer)], ref.block);
}

/// Runs the steps over the terms of all blocks.
class Proof {
 public:
  explicit Proof(const Schedule& schedule);
  Result<void> run();
  Result<Meaning> meaning();

 private:
  struct Landing {
    std::size_t cell;  // of the destination
    const Transfer* transfer;
    Id term;
  };

  int blocks(Rank rank, Buffer buffer) const {
    const Schedule& s = schedule_;
    const int groups = buffer == Buffer::input    ? input_groups(s.collective(), s.ranks(), rank, s.root())
                       : buffer == Buffer::output ? output_groups(s.collective(), s.ranks(), rank, s.root())
                                                  : s.scratch_groups();
    return groups * s.parts();
  }
  bool has_rank(Rank rank) const { return rank >= 0 && rank < schedule_.ranks(); }
  std::size_t cell(Rank rank, Ref ref) const {
    return first_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(ref.buffer)] +
           static_cast<std::size_t>(ref.block);
  }
  Result<void> step(std::span<const Transfer* const> transfers);
  std::string refs_wrong(const Transfer& t) const;
  bool overwritten_in_place(Rank rank, Ref src) const;
  Result<void> land(std::span<const Landing> landings, std::size_t cell);
  bool is_right(Id term, Rank rank, int block) const;
  bool alike_everywhere() const;

  const Schedule& schedule_;
  TermTable table_;
  std::vector<std::size_t> first_;  // cell of each rank's first input, output and scratch block
  std::vector<Id> terms_;           // by cell
};

Proof::Proof(const Schedule& schedule) : schedule_(schedule), table_(schedule.ranks()) {
  std::size_t cells = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      first_.push_back(cells);
      cells += static_cast<std::size_t>(blocks(rank, buffer));
    }
  terms_.assign(cells, TermTable::nothing);
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (int block = 0; block < blocks(rank, Buffer::input); ++block)
      terms_[cell(rank, {Buffer::input, block})] = table_.leaf(rank, block);
}

Error wrong(Rank rank, int step, std::string what) {
  return Error{.code = Code::internal, .what = std::move(what), .peer = rank, .step = step};
}

Result<void> Proof::run() {
  std::vector<const Transfer*> in_order;
  in_order.reserve(schedule_.transfers().size());
  for (const Transfer& t : schedule_.transfers()) in_order.push_back(&t);
  std::ranges::stable_sort(in_order, {}, &Transfer::step);
  for (auto begin = in_order.begin(); begin != in_order.end();) {
    const auto end = std::ranges::find_if(begin, in_order.end(), [&](auto* t) { return t->step != (*begin)->step; });
    if (auto done = step({begin, end}); !done) return done;
    begin = end;
  }
  return {};
}

/// All sources are read before anything lands.
Result<void> Proof::step(std::span<const Transfer* const> transfers) {
  std::vector<Landing> landings;
  landings.reserve(transfers.size());
  for (const Transfer* t : transfers) {
    if (auto what = refs_wrong(*t); !what.empty()) return wrong(has_rank(t->to) ? t->to : -1, t->step, what);
    const Id term = terms_[cell(t->from, t->src)];
    if (term == TermTable::nothing)
      return wrong(t->from, t->step, fmt::format("{} is read before anything is written to it", text(t->src)));
    if (overwritten_in_place(t->from, t->src))
      return wrong(t->from, t->step, fmt::format("{} is read after its place was written, in place", text(t->src)));
    landings.push_back({.cell = cell(t->to, t->dst), .transfer = t, .term = term});
  }
  std::ranges::stable_sort(landings, [](const Landing& a, const Landing& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.transfer->order < b.transfer->order;
  });
  for (auto begin = landings.begin(); begin != landings.end();) {
    const auto end = std::ranges::find_if(begin, landings.end(), [&](auto& l) { return l.cell != begin->cell; });
    if (auto landed = land({begin, end}, begin->cell); !landed) return landed;
    begin = end;
  }
  return {};
}

/// Empty if the transfer joins two blocks that may be joined.
std::string Proof::refs_wrong(const Transfer& t) const {
  if (!has_rank(t.from) || !has_rank(t.to)) return fmt::format("no such pair of ranks: {} to {}", t.from, t.to);
  if (t.src.block < 0 || t.src.block >= blocks(t.from, t.src.buffer))
    return fmt::format("rank {} has no {}", t.from, text(t.src));
  if (t.dst.block < 0 || t.dst.block >= blocks(t.to, t.dst.buffer))
    return fmt::format("rank {} has no {}", t.to, text(t.dst));
  if (t.dst.buffer == Buffer::input) return fmt::format("{} is written", text(t.dst));
  if (t.src.block % schedule_.parts() != t.dst.block % schedule_.parts())
    return fmt::format("{} and {} are blocks of two parts", text(t.src), text(t.dst));
  return {};
}

/// A copy of the input onto itself changes nothing, except where reading scales it.
bool Proof::overwritten_in_place(Rank rank, Ref src) const {
  if (src.buffer != Buffer::input) return false;
  const Schedule& s = schedule_;
  const int same = in_place_block(s.collective(), s.ranks(), s.parts(), rank, s.root(), src.block);
  if (same < 0) return false;
  const Id over = terms_[cell(rank, {Buffer::output, same})];
  if (over == TermTable::nothing) return false;
  return reduces(s.collective()) || !table_.is_leaf(over, rank, src.block);
}

Result<void> Proof::land(std::span<const Landing> landings, std::size_t at) {
  const Transfer& first = *landings[0].transfer;
  std::vector<Id> operands;
  for (std::size_t i = 0; i < landings.size(); ++i) {
    const Transfer& t = *landings[i].transfer;
    if (i > 0 && (t.kind == Kind::copy || first.kind == Kind::copy))
      return wrong(t.to, t.step, fmt::format("{} is written twice in one step", text(t.dst)));
    if (i > 0 && t.order == landings[i - 1].transfer->order)
      return wrong(t.to, t.step, fmt::format("two operands of {} have order {}", text(t.dst), t.order));
    if (t.kind == Kind::reduce && !reduces(schedule_.collective()))
      return wrong(t.to, t.step, fmt::format("{} reduces into {}", name(schedule_.collective()), text(t.dst)));
    operands.push_back(landings[i].term);
  }
  terms_[at] = table_.reduced(operands);
  if (terms_[at] == TermTable::nothing)
    return wrong(first.to, first.step, fmt::format("{} counts a contribution twice, or mixes blocks", text(first.dst)));
  return {};
}

/// Whether `term` is what the collective promises in `rank`'s output `block`.
bool Proof::is_right(Id term, Rank rank, int block) const {
  const int parts = schedule_.parts();
  const int group = block / parts, part = block % parts;
  switch (schedule_.collective()) {
    case Collective::all_reduce:
    case Collective::reduce: return table_.is_total(term, block, schedule_.ranks());
    case Collective::reduce_scatter: return table_.is_total(term, rank * parts + part, schedule_.ranks());
    case Collective::broadcast: return table_.is_leaf(term, schedule_.root(), block);
    case Collective::scatter: return table_.is_leaf(term, schedule_.root(), rank * parts + part);
    case Collective::all_gather:
    case Collective::gather:
    case Collective::barrier: return table_.is_leaf(term, group, part);
    case Collective::all_to_all: return table_.is_leaf(term, group, rank * parts + part);
  }
  return false;
}

Result<Meaning> Proof::meaning() {
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank)
    for (int block = 0; block < blocks(rank, Buffer::output); ++block)
      if (!is_right(terms_[cell(rank, {Buffer::output, block})], rank, block))
        return wrong(rank, -1, fmt::format("output block {} ends wrong", block));

  Meaning result{.order = {}, .same_bits = alike_everywhere()};
  const Rank shown = blocks(0, Buffer::output) > 0 ? 0 : schedule_.root();
  for (int block = 0; block < blocks(shown, Buffer::output); ++block)
    result.order.push_back(table_.hash(terms_[cell(shown, {Buffer::output, block})]));
  return result;
}

/// Only an all-reduce computes the same thing on several ranks; whoever holds a copy holds the original's tree.
bool Proof::alike_everywhere() const {
  if (schedule_.collective() != Collective::all_reduce) return true;
  for (Rank rank = 1; rank < schedule_.ranks(); ++rank)
    for (int block = 0; block < schedule_.parts(); ++block)
      if (terms_[cell(rank, {Buffer::output, block})] != terms_[cell(0, {Buffer::output, block})]) return false;
  return true;
}

}  // namespace

Result<Meaning> verify(const Schedule& schedule) {
  Proof proof(schedule);
  if (auto ran = proof.run(); !ran) return std::move(ran).error();
  return proof.meaning();
}

}  // namespace tutti
