// One rank's plan, valid for calls of any size, and its binding to one call.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "plan/action.h"
#include "plan/types.h"

namespace tutti {

/// How ranks reach each other's data in one call. Decided from the call descriptors, so equal on all ranks.
enum class Access : std::uint8_t {
  in_line,  ///< inputs travel inside the call descriptors (small calls; schedules of one step that read only inputs)
  mapped,   ///< peers' buffers are mapped: load and store
  cma,      ///< peers' buffers can only be copied from (process_vm_readv)
  slots,    ///< through slots; always works
};
std::string_view name(Access access);

/// A message of one block that one pass copies into this rank's own buffers, while nothing else reads it: see
/// inviting.h.
struct Invitation {
  std::uint32_t pass = 0;       ///< the copy: an index into the plan's actions
  std::uint32_t free_from = 0;  ///< from this action up to the copy, nothing touches its first own destination
  std::uint32_t number = 0;     ///< of the message, among those that the peer sends in one tile
  std::uint16_t peer = 0;
};
struct Invitations {
  std::vector<Invitation> all;          ///< in the order of their passes
  std::vector<std::uint32_t> messages;  ///< by rank: how many it sends in one tile
};

/// A channel runs all actions once for each of its tiles. Each channel has its own fifos and flags; channels share
/// nothing.
struct Plan {
  Collective collective = Collective::all_reduce;
  Access access = Access::slots;
  int ranks = 1;
  Rank rank = 0;
  Rank root = 0;
  int parts = 1;
  int scratch_groups = 0;
  int items_max = 0;    ///< blocks in the largest message of any rank: the tile must be so small that they fit one slot
  bool direct = false;  ///< see direct() in counts.h
  std::vector<Action> actions;
  std::vector<Place> places;
  std::vector<bool> outlasts;  ///< by place, see outlasting(); empty: not computed
  Invitations invitations;     ///< see inviting.h; empty: not computed

  std::span<const Place> sources(const Action& a) const { return {places.data() + a.first, a.sources}; }
  std::span<const Place> destinations(const Action& a) const {
    return {places.data() + a.first + a.sources, a.destinations};
  }
};

/// Whether the pass writes only results in users' buffers, which are not read again before the call ends. Slots,
/// scratch and partial sums are read again.
bool writes_results(const Plan& plan, const Action& action);

/// Whether the pass makes sums in this rank's results that peers copy from there by CMA.
bool makes_pulled_sums(const Plan& plan, const Action& action);

/// Calls `visit` with each place in a peer's buffers that a pass of the plan touches; a place may come several times.
/// Ends at the first error.
template <class F>
Result<void> for_each_peer_place(const Plan& plan, F&& visit) {
  for (const Action& action : plan.actions) {
    if (!is_pass(action)) continue;
    for (const auto& places : {plan.sources(action), plan.destinations(action)})
      for (const Place& place : places) {
        if (place.where != Where::peer_input && place.where != Where::peer_output) continue;
        TUTTI_TRY(visit(place));
      }
  }
  return {};
}

/// Element range of one part inside a group, or of one tile inside a part.
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
  bool operator==(const Range&) const = default;
};

/// Divides `count` elements of a group into parts, and each part into tiles. All ranks compute the same division. Parts
/// are equal up to one unit, which is one element, or a cache line's worth where parts are large (4 KiB and more).
class Split {
 public:
  Split() = default;
  Split(std::size_t count, std::size_t element_bytes, int parts);

  /// Divides parts into tiles so that `items` blocks of one tile fit `slot_bytes`. Without this call there is one tile.
  void tile(std::size_t slot_bytes, int items);

  std::size_t tiles() const { return tiles_; }
  std::size_t count() const { return count_; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::size_t parts() const { return parts_; }
  /// In elements: parts begin at multiples of unit(); a tile has tile_elements(), or all of its part if that is 0.
  std::size_t unit() const { return unit_; }
  std::size_t tile_elements() const { return tile_elements_; }

  /// The part's range inside the group, in elements.
  Range part(int part) const;
  /// The range inside the group of tile `tile` of `part`; may be empty.
  Range tile_of(int part, std::size_t tile) const;
  /// As tile_of, for a group of another size, at most count(), with one part: where groups differ in size, a call is
  /// divided as its largest group.
  Range tile_of_group(std::size_t count, std::size_t tile) const;

  /// Bytes from one item of a message to the next; item i of a slot begins at i · stride().
  std::size_t stride() const { return stride_; }

  /// Bytes of one scratch group; its parts lie as in the other buffers.
  std::size_t group_bytes() const { return count_ * element_bytes_; }

 private:
  std::size_t count_ = 0;
  std::size_t element_bytes_ = 1;
  std::size_t parts_ = 1;
  std::size_t unit_ = 1;           // elements
  std::size_t tile_elements_ = 0;  // 0: one tile
  std::size_t tiles_ = 1;
  std::size_t stride_ = 0;
};

/// A peer's memory as seen here: mapped (pid 0), or an address inside process `pid` that can only be copied from.
struct PeerMemory {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  ForeignProcess process = {};  ///< whose addresses these are; none: they are mapped here
};

/// Addresses and sizes of one call. Group g of `input` begins at input + g · count · element bytes, or where a call
/// with a count per rank says. Such a call has only plans with one part; in a peer's memory it accesses at most one
/// block, and `peers` points to that block.
struct Binding {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  UserFunction user = {};  ///< of ReduceOp::user
  Split split;
  /// a count per rank: this rank's groups are the following, in elements, none larger than
  bool groups_differ = false;
  std::span<const Range> input_groups;  ///< the count of the split; otherwise all groups have that count
  std::span<const Range> output_groups;
  std::span<const PeerMemory> peers;  ///< by rank; mapped and cma only
  /// by rank, bits of the type, pre-multiplied sums only; own one always set
  std::span<const std::uint64_t> scalars;
  std::uint64_t sequence = 0;  ///< number of the call in its communicator, from 1
};

}  // namespace tutti
