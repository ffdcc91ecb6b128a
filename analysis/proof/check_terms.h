// The symbolic content of blocks: whose contributions, reduced in which tree.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::proof {

/// The terms of one collective. Equal terms have equal ids.
///
/// In a collective that reduces, a contribution is `raw` until a pass reads it with Place::contribution, which scales
/// it in a pre-multiplied sum. A result is `finished` once a pass with Action::last has made it, which divides in an
/// average. Other collectives have raw contributions only.
class Terms {
 public:
  using Id = std::uint32_t;
  static constexpr Id undefined = 0;

  explicit Terms(const Schedule& schedule);

  Id raw(Rank rank, int block) const { return first_raw(rank) + static_cast<Id>(block); }
  bool is_raw(Id id) const { return id != undefined && id <= leaves_; }
  Id scaled(Id raw) const { return raw + leaves_; }
  /// What another rank receives from `rank`'s input: scaled if the collective reduces.
  Id contribution(Rank rank, int block) const { return reduces_ ? scaled(raw(rank, block)) : raw(rank, block); }

  /// One pass over `operands` in their order; a single operand is the result itself.
  Id reduced(std::span<const Id> operands);
  /// Any number of operands: passes of limits::sources_max, where each result is the first operand of the next pass.
  Id chained(std::span<const Id> operands);
  Id finished(Id id);
  bool is_finished(Id id) const { return nodes_[id].finished; }
  /// How many contributions it has.
  int inputs(Id id) const { return nodes_[id].inputs; }

  /// Whether the term has the contributions that `rank`'s output `block` must have, each once.
  bool complete(Id id, Rank rank, int block) const;
  /// "(0.3 + 1.3)": contributions as rank.block. Long texts are truncated.
  std::string text(Id id) const;

 private:
  /// Commutative: equal for any order and grouping of the same contributions. With 128 bits, chance equality is
  /// negligible.
  using Sum = std::array<std::uint64_t, 2>;
  struct Node {
    Sum sum{};
    std::uint32_t first = 0;  // index in operands_
    std::uint32_t count = 0;  // 0: a leaf
    bool finished = false;
    int inputs = 1;
  };

  Id first_raw(Rank rank) const { return first_raw_[static_cast<std::size_t>(rank)]; }
  Id intern(std::span<const Id> operands, bool finished);
  bool same(const Node& node, std::span<const Id> operands, bool finished) const;
  void grow();
  void write(Id id, std::string& text) const;

  Collective collective_;
  int ranks_;
  Rank root_;
  int parts_;
  bool reduces_;
  std::vector<Id> first_raw_;  // by rank
  Id leaves_ = 0;
  std::vector<Node> nodes_;
  std::vector<Id> operands_;
  std::vector<Id> table_;  // open addressing over the nodes that are not leaves
  std::size_t interned_ = 0;
};

/// The term of every output block at the end of `schedule`, by rank and block, before finishing. Errors: internal, if a
/// ref or rank is out of range, a transfer reads an undefined block, two transfers write one block, or a contribution
/// is missing or occurs twice.
Result<std::vector<std::vector<Terms::Id>>> outcome(const Schedule& schedule, Terms& terms);

}  // namespace tutti::proof
