// The symbolic content of blocks while a schedule is verified: whose contributions, reduced in which tree of passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// Hash-consed: equal trees have equal ids. An input block is an id of its own, without a node; every other id stands
/// for an exact set of contributions.
class ContributionTrees {
 public:
  using Id = std::uint32_t;
  static constexpr Id nothing = ~Id{0};

  explicit ContributionTrees(const Schedule& schedule);

  Id leaf(Rank rank, int block) const { return first_leaf_[static_cast<std::size_t>(rank)] + static_cast<Id>(block); }

  /// One reduction, as the chain of passes that carries it out; `nothing` if it mixes input blocks or counts a rank
  /// twice. For collectives that reduce.
  Id reduced(std::span<const Id> operands);

  /// Whether it has all ranks' contributions to `block`, each once.
  bool is_total(Id id, int block) const { return block_of(id) == block && contributions(id) == ranks_; }

  /// Whether it has the contributions of the first `count` ranks to `block`, each once, in the order of ranks from left
  /// to right. So it is right for operators that are associative and not commutative.
  bool is_prefix(Id id, int block, int count) const {
    const Span ranks = span_of(id);
    return block_of(id) == block && contributions(id) == count && ranks.ascends && ranks.last == count - 1;
  }

  bool has(Id id, Rank rank) const;  ///< of a collective that reduces: whether a contribution of this rank is in it
  /// Of a collective that reduces: the input block that it has contributions to.
  int block_of(Id id) const { return is_leaf(id) ? static_cast<int>(id % blocks_) : node(id).block; }
  /// Of one that does not: the rank whose input it is, and the block.
  std::pair<Rank, int> leaf_of(Id leaf) const;

  /// Hash of the tree of passes with ranks as leaves, independent of the block.
  std::uint64_t hash(Id id) const;

 private:
  /// The ranks of a tree's leaves from left to right.
  struct Span {
    Rank first = 0;
    Rank last = 0;
    bool ascends = true;
  };
  struct Node {
    std::uint64_t hash = 0;
    std::size_t first = 0;  // index of its operands
    int count = 0;
    int block = 0;
    int contributions = 0;
    Span ranks;
  };

  bool is_leaf(Id id) const { return id < leaves_; }
  // If a collective reduces, every rank has equally many input blocks.
  Id rank_of(Id leaf) const { return leaf / blocks_; }
  int contributions(Id id) const { return is_leaf(id) ? 1 : node(id).contributions; }
  const Node& node(Id id) const { return nodes_[id - leaves_]; }
  Span span_of(Id id) const;
  Span joined(std::span<const Id> operands) const;

  Id of_pass(std::span<const Id> operands);
  Id insert(std::span<const Id> operands);
  bool add_ranks(std::uint64_t* set, Id id) const;
  std::size_t slot_of(std::span<const Id> operands) const;
  void grow();

  int ranks_;
  std::size_t words_;  // number of words in a set of ranks
  std::vector<Id> first_leaf_;
  Id leaves_ = 0;
  Id blocks_ = 1;
  std::vector<Node> nodes_;
  std::vector<Id> operands_;
  std::vector<std::uint64_t> ranks_of_;  // a set for each node
  std::vector<Id> table_;                // open addressing over nodes
};

}  // namespace tutti
