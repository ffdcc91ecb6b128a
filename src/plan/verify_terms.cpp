// Trees of passes over contributions; each tree is stored once.
#include "plan/verify_terms.h"

#include <algorithm>

#include "base/limits.h"

namespace tutti {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

ContributionTrees::ContributionTrees(const Schedule& schedule)
    : ranks_(schedule.ranks()), words_((static_cast<std::size_t>(ranks_) + 63) / 64) {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    first_leaf_.push_back(leaves_);
    leaves_ += static_cast<Id>(input_groups(schedule.collective(), ranks_, rank, schedule.root()) * schedule.parts());
  }
  if (reduces(schedule.collective())) blocks_ = leaves_ / static_cast<Id>(ranks_);
  table_.assign(64, nothing);
}

ContributionTrees::Id ContributionTrees::reduced(std::span<const Id> operands) {
  std::size_t next = std::min<std::size_t>(operands.size(), limits::sources_max);
  Id so_far = of_pass(operands.first(next));
  std::vector<Id> pass;
  while (next < operands.size() && so_far != nothing) {
    const std::size_t more = std::min<std::size_t>(operands.size() - next, limits::sources_max - 1);
    pass.assign(1, so_far);
    pass.insert(pass.end(), operands.begin() + static_cast<std::ptrdiff_t>(next),
                operands.begin() + static_cast<std::ptrdiff_t>(next + more));
    so_far = of_pass(pass);
    next += more;
  }
  return so_far;
}

bool ContributionTrees::has(Id id, Rank rank) const {
  if (is_leaf(id)) return rank_of(id) == static_cast<Id>(rank);
  const std::uint64_t* const set = ranks_of_.data() + (id - leaves_) * words_;
  return (set[rank / 64] >> (rank % 64) & 1) != 0;
}

std::pair<Rank, int> ContributionTrees::leaf_of(Id leaf) const {
  const auto next = std::ranges::upper_bound(first_leaf_, leaf);
  const auto rank = static_cast<Rank>(next - first_leaf_.begin()) - 1;
  return {rank, static_cast<int>(leaf - first_leaf_[static_cast<std::size_t>(rank)])};
}

std::uint64_t ContributionTrees::hash(Id id) const {
  return is_leaf(id) ? mix(rank_of(id), 0) : node(id).hash;
}

ContributionTrees::Id ContributionTrees::of_pass(std::span<const Id> operands) {
  if (operands.size() == 1) return operands[0];
  if (2 * nodes_.size() >= table_.size()) grow();
  const std::size_t slot = slot_of(operands);
  if (table_[slot] == nothing) table_[slot] = insert(operands);
  return table_[slot];
}

/// The index of the node, or of its free place.
std::size_t ContributionTrees::slot_of(std::span<const Id> operands) const {
  std::uint64_t hash = operands.size();
  for (const Id operand : operands) hash = mix(hash, operand);
  std::size_t slot = hash & (table_.size() - 1);
  for (; table_[slot] != nothing; slot = (slot + 1) & (table_.size() - 1)) {
    const Node& known = node(table_[slot]);
    const auto first = operands_.begin() + static_cast<std::ptrdiff_t>(known.first);
    if (std::equal(operands.begin(), operands.end(), first, first + known.count)) break;
  }
  return slot;
}

void ContributionTrees::grow() {
  table_.assign(2 * table_.size(), nothing);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::span<const Id> operands(operands_.data() + nodes_[i].first, static_cast<std::size_t>(nodes_[i].count));
    table_[slot_of(operands)] = leaves_ + static_cast<Id>(i);
  }
}

ContributionTrees::Id ContributionTrees::insert(std::span<const Id> operands) {
  Node made{.hash = mix(hash(operands[0]), operands.size()),
            .first = operands_.size(),
            .count = static_cast<int>(operands.size()),
            .block = block_of(operands[0]),
            .ranks = joined(operands)};
  ranks_of_.resize(ranks_of_.size() + words_);
  std::uint64_t* const set = ranks_of_.data() + nodes_.size() * words_;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) made.hash = mix(made.hash, hash(operands[i]));
    made.contributions += contributions(operands[i]);
    if (block_of(operands[i]) == made.block && add_ranks(set, operands[i])) continue;
    ranks_of_.resize(nodes_.size() * words_);
    return nothing;
  }
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  nodes_.push_back(made);
  return leaves_ + static_cast<Id>(nodes_.size()) - 1;
}

ContributionTrees::Span ContributionTrees::span_of(Id id) const {
  if (!is_leaf(id)) return node(id).ranks;
  const auto rank = static_cast<Rank>(rank_of(id));
  return {.first = rank, .last = rank};
}

ContributionTrees::Span ContributionTrees::joined(std::span<const Id> operands) const {
  Span all = span_of(operands[0]);
  for (const Id operand : operands.subspan(1)) {
    const Span next = span_of(operand);
    all.ascends = all.ascends && next.ascends && all.last < next.first;
    all.last = next.last;
  }
  return all;
}

/// False if one of the ranks is already in the set.
bool ContributionTrees::add_ranks(std::uint64_t* set, Id id) const {
  if (is_leaf(id)) {
    const std::uint64_t bit = std::uint64_t{1} << (rank_of(id) % 64);
    std::uint64_t& word = set[rank_of(id) / 64];
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  const std::uint64_t* const more = ranks_of_.data() + (id - leaves_) * words_;
  for (std::size_t word = 0; word < words_; ++word) {
    if (set[word] & more[word]) return false;
    set[word] |= more[word];
  }
  return true;
}

}  // namespace tutti
