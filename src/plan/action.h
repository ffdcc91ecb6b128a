// One rank's actions. They name block indices, never bytes or pointers. Actions are trivially copyable and of fixed
// size: device kernels include this header too, and an upload is a memcpy.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tutti {

enum class Where : std::uint8_t {
  input,  ///< own buffers; `block` as in Ref
  output,
  scratch,
  /// the open message from `peer` (as source) or to `peer` (as destination); `block` is the item in the message
  slot,
  peer_input,  ///< a peer's buffers, accessed through windows
  peer_output,
  peer_payload,  ///< the peer's whole input, published in its call descriptor; `block` as in its input
};

/// A sum of several ranks' inputs can be infinite where their average is not. So in an average of floats a block that
/// holds the sum of so many inputs is kept halved so often, which makes it no larger than the largest of them.
constexpr int halvings_of(int inputs) {
  int halvings = 0;
  while ((std::int64_t{1} << halvings) < inputs) ++halvings;
  return halvings;
}

/// An operand of a pass.
struct Place {
  Where where = Where::input;
  /// reads a rank's own contribution, so a pre-multiplied sum scales it here (never slots or descriptors)
  std::uint8_t contribution : 1 = 0;
  /// of a reduction's source, if the collective averages(): halvings_of() the inputs that the block holds
  std::uint8_t halvings : 7 = 0;
  std::uint16_t peer = 0;
  std::uint32_t block = 0;
  bool operator==(const Place&) const = default;
};

constexpr bool same_block(const Place& a, const Place& b) {
  return a.where == b.where && a.peer == b.peer && a.block == b.block;
}

/// Not in the rank's own buffers.
constexpr bool is_far(const Place& place) {
  return place.where >= Where::slot;
}

/// In those of the rank's own buffers that passes write.
constexpr bool is_written(const Place& place) {
  return place.where == Where::output || place.where == Where::scratch;
}

enum class Verb : std::uint8_t {
  copy,     ///< one source to all destinations
  reduce,   ///< sources combined in the listed order (at most limits::sources_max), to all destinations, in one pass
  acquire,  ///< opens a message to `peer`; blocks until a slot is free
  commit,   ///< publishes the open message
  peek,     ///< opens the next message from `peer`; blocks until it has arrived
  release,  ///< returns the slot of the peeked message
  /// waits until `peer` has taken the last committed message; at the end of a step, never needed with slots
  settle,
  signal,           ///< raises this channel's flag at `peer` by one
  wait,             ///< blocks until `peer` has raised its flag here once more than waited for so far
  wait_descriptor,  ///< blocks until `peer`'s call descriptor of this call is here, and opens it
};

struct Action {
  Verb verb = Verb::copy;
  std::uint8_t last = 0;           ///< reduce: the block is complete after this pass, so an average divides here
  std::uint16_t peer = 0;          ///< for all actions but passes
  std::uint16_t sources = 0;       ///< passes: places[first … first+sources) are read,
  std::uint16_t destinations = 0;  ///< and the next `destinations` places are written
  std::uint32_t first = 0;
  std::uint32_t part = 0;      ///< passes: the part whose size the blocks have
  std::uint32_t items = 0;     ///< acquire, peek: number of blocks in the message
  std::uint32_t step = 0;      ///< of the schedule, for error messages
  std::uint32_t parallel = 1;  ///< on devices: how many actions, from this one on, are carried out side by side
  std::uint32_t halvings = 0;  ///< reduce: as of a place, of the result; of one that is `last`, before the division
  bool operator==(const Action&) const = default;
};

/// Passes move data; all other actions synchronise with peers.
constexpr bool is_pass(const Action& action) {
  return action.verb == Verb::copy || action.verb == Verb::reduce;
}

/// Whether an average of floats makes the pass with weights (kernels/ops.h): all but those that complete it from inputs
/// alone. `sources`: its places.
template <class Sources>
constexpr bool is_weighted(const Action& action, const Sources& sources) {
  if (action.verb != Verb::reduce || action.last == 0) return action.verb == Verb::reduce;
  for (unsigned i = 0; i < action.sources; ++i)
    if (sources[i].halvings != 0) return true;
  return false;
}

static_assert(sizeof(Place) == 8 && std::is_trivially_copyable_v<Place>);
static_assert(sizeof(Action) == 32 && std::is_trivially_copyable_v<Action>);

}  // namespace tutti
