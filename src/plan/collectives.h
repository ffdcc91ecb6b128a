// What each collective is: who has which buffers, and what becomes of their contents. A new collective begins with a
// line of collectives.inc; from there on the compiler names the places that have more to say of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/enumeration.h"

namespace tutti {

using Rank = int;

enum class Collective : std::uint8_t {
#define TUTTI_COLLECTIVE(name, ...) name,
#include "plan/collectives.inc"
};

/// Which ranks have a buffer.
enum class Holders : std::uint8_t { everybody, root, all_but_rank_0 };
/// Groups in a buffer, each of the call's count of elements.
enum class GroupCount : std::uint8_t { one, one_per_rank };
/// prefix: each rank's output combines the inputs of the ranks before it, in the order of ranks.
enum class Computes : std::uint8_t { nothing, reduction, prefix };
/// Where the two buffers of an in-place call are.
enum class InPlace : std::uint8_t {
  same,             ///< at the same address
  input_in_output,  ///< the input is the rank's own group of the output
  output_in_input,  ///< the output is the rank's own group of the input
  by_copy,          ///< at the same address, and the caller copies its input first
  never,
};

/// Of a size by which small calls find theirs in one step.
struct alignas(8) CollectiveFacts {
  Holders input;
  GroupCount input_groups;
  Holders output;
  GroupCount output_groups;
  Computes computes;
  InPlace in_place;
};
/// By number.
inline constexpr CollectiveFacts collective_facts[] = {
#define TUTTI_COLLECTIVE(name, input, input_groups, output, output_groups, computes, in_place) \
  {Holders::input,     GroupCount::input_groups, Holders::output, GroupCount::output_groups,   \
   Computes::computes, InPlace::in_place},
#include "plan/collectives.inc"
};
inline constexpr std::string_view collective_names[] = {
#define TUTTI_COLLECTIVE(name, ...) #name,
#include "plan/collectives.inc"
};
inline constexpr int collective_count = std::size(collective_facts);
template <>
struct EnumBounds<Collective> {
  static constexpr Collective first{}, last{collective_count - 1};
};

constexpr const CollectiveFacts& facts_of(Collective collective) {
  return collective_facts[static_cast<std::size_t>(collective)];
}

constexpr bool holds(Holders holders, Rank rank, Rank root) {
  return holders == Holders::everybody || (holders == Holders::root ? rank == root : rank != 0);
}
constexpr bool has_input(Collective collective, Rank rank, Rank root) {
  return holds(facts_of(collective).input, rank, root);
}
constexpr bool has_output(Collective collective, Rank rank, Rank root) {
  return holds(facts_of(collective).output, rank, root);
}

/// Number of groups in a rank's buffer; 0 if the collective gives the rank no such buffer.
constexpr int input_groups(Collective collective, int ranks, Rank rank, Rank root) {
  if (!has_input(collective, rank, root)) return 0;
  return facts_of(collective).input_groups == GroupCount::one ? 1 : ranks;
}
constexpr int output_groups(Collective collective, int ranks, Rank rank, Rank root) {
  if (!has_output(collective, rank, root)) return 0;
  return facts_of(collective).output_groups == GroupCount::one ? 1 : ranks;
}

constexpr bool rooted(Collective collective) {
  return facts_of(collective).input == Holders::root || facts_of(collective).output == Holders::root;
}
constexpr bool prefixes(Collective collective) {
  return facts_of(collective).computes == Computes::prefix;
}
constexpr bool reduces(Collective collective) {
  return facts_of(collective).computes != Computes::nothing;
}
/// Whether ReduceOp::avg is defined for it. Prefixes have no common number of inputs to divide by.
constexpr bool averages(Collective collective) {
  return facts_of(collective).computes == Computes::reduction;
}
/// Whether an in-place call reads from a copy of its input. An all-to-all does because no order of transfers works in
/// one buffer for every plan; an exclusive scan because a rank needs its input when its result is there already, and
/// as many algorithms as possible pass on both.
constexpr bool copies_in_place(Collective collective) {
  return facts_of(collective).in_place == InPlace::by_copy;
}

/// Of a collective that reduces: how many ranks' inputs, from rank 0 on, are combined in `rank`'s output.
constexpr int ranks_combined(Collective collective, int ranks, Rank rank) {
  if (!prefixes(collective)) return ranks;
  return has_output(collective, 0, 0) ? rank + 1 : rank;
}

}  // namespace tutti
