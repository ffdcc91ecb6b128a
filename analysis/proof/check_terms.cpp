// The symbolic content of blocks, and the content that a schedule leaves in each.
#include "analysis/proof/check_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"

namespace tutti::proof {
namespace {

constexpr std::size_t text_bytes_max = 200;

/// The finaliser of splitmix64.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::size_t hash_of(std::span<const Terms::Id> operands, bool finished) {
  std::uint64_t hash = finished ? 1 : 2;
  for (const Terms::Id id : operands) hash = mixed(hash ^ id);
  return hash;
}

}  // namespace

Terms::Terms(const Schedule& schedule)
    : collective_(schedule.collective()),
      ranks_(schedule.ranks()),
      root_(schedule.root()),
      parts_(schedule.parts()),
      reduces_(reduces(schedule.collective())) {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    first_raw_.push_back(1 + leaves_);
    leaves_ += static_cast<Id>(input_groups(collective_, ranks_, rank, root_) * parts_);
  }
  nodes_.resize(1 + 2 * std::size_t{leaves_});
  for (Id id = 1; id <= leaves_; ++id) {
    nodes_[id].sum = {mixed(2 * id), mixed(2 * id + 1)};
    nodes_[scaled(id)].sum = nodes_[id].sum;
  }
  table_.assign(64, undefined);
}

Terms::Id Terms::reduced(std::span<const Id> operands) {
  assert(!operands.empty());
  return operands.size() == 1 ? operands[0] : intern(operands, false);
}

Terms::Id Terms::chained(std::span<const Id> operands) {
  std::size_t next = std::min<std::size_t>(operands.size(), limits::sources_max);
  Id result = reduced(operands.first(next));
  std::vector<Id> pass;
  while (next < operands.size()) {
    const std::size_t more = std::min<std::size_t>(operands.size() - next, limits::sources_max - 1);
    pass.assign(1, result);
    pass.insert(pass.end(), operands.begin() + next, operands.begin() + next + more);
    result = reduced(pass);
    next += more;
  }
  return result;
}

Terms::Id Terms::finished(Id id) {
  return intern({&id, 1}, true);
}

bool Terms::same(const Node& node, std::span<const Id> operands, bool finished) const {
  return node.finished == finished && node.count == operands.size() &&
         std::equal(operands.begin(), operands.end(), operands_.begin() + node.first);
}

Terms::Id Terms::intern(std::span<const Id> operands, bool finished) {
  if (2 * interned_ >= table_.size()) grow();
  std::size_t slot = hash_of(operands, finished) & (table_.size() - 1);
  while (table_[slot] != undefined) {
    if (same(nodes_[table_[slot]], operands, finished)) return table_[slot];
    slot = (slot + 1) & (table_.size() - 1);
  }
  Node node{.sum = {},
            .first = static_cast<std::uint32_t>(operands_.size()),
            .count = static_cast<std::uint32_t>(operands.size()),
            .finished = finished,
            .inputs = 0};
  for (const Id id : operands) {
    node.inputs += nodes_[id].inputs;
    for (std::size_t i = 0; i < node.sum.size(); ++i) node.sum[i] += nodes_[id].sum[i];
  }
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  nodes_.push_back(node);
  ++interned_;
  return table_[slot] = static_cast<Id>(nodes_.size() - 1);
}

void Terms::grow() {
  std::vector<Id> old(2 * table_.size(), undefined);
  old.swap(table_);
  for (const Id id : old) {
    if (id == undefined) continue;
    const Node& node = nodes_[id];
    std::size_t slot = hash_of({operands_.data() + node.first, node.count}, node.finished) & (table_.size() - 1);
    while (table_[slot] != undefined) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = id;
  }
}

bool Terms::complete(Id id, Rank rank, int block) const {
  const int group = block / parts_;
  const int part = block % parts_;
  const CollectiveFacts& facts = facts_of(collective_);
  const int own = facts.input_groups == GroupCount::one ? part : rank * parts_ + part;
  if (facts.computes == Computes::nothing) return id == raw(facts.input == Holders::root ? root_ : group, own);
  Sum expected{};
  const int combined = ranks_combined(collective_, ranks_, rank);
  for (Rank from = 0; from < combined; ++from)
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += nodes_[raw(from, own)].sum[i];
  return !is_raw(id) && nodes_[id].sum == expected;
}

std::string Terms::text(Id id) const {
  std::string text;
  write(id, text);
  if (text.size() > text_bytes_max) text.resize(text_bytes_max), text += "…";
  return text;
}

void Terms::write(Id id, std::string& text) const {
  if (text.size() > text_bytes_max) return;
  if (id == undefined) {
    text += "nothing";
  } else if (id <= 2 * leaves_) {
    const Id leaf = is_raw(id) ? id : id - leaves_;
    const auto rank = std::upper_bound(first_raw_.begin(), first_raw_.end(), leaf) - first_raw_.begin() - 1;
    text += fmt::format("{}.{}", rank, leaf - first_raw(static_cast<Rank>(rank)));
  } else {
    const Node& node = nodes_[id];
    text += node.finished ? "finished (" : "(";
    for (std::uint32_t i = 0; i < node.count; ++i) {
      if (i > 0) text += " + ";
      write(operands_[node.first + i], text);
    }
    text += ")";
  }
}

}  // namespace tutti::proof
