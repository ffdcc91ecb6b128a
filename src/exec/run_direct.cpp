// Passes of large blocks through fifos that support it: messages are sent from the call's buffers, received into them,
// and reduced while they still arrive.
#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "exec/run.h"
#include "plan/inviting.h"
#include "plan/outlasting.h"

namespace tutti {
namespace {

/// Sizes of the pieces that are reduced while the rest of a message still arrives: small enough to stay in the
/// second-level cache until they are reduced, and large enough to outweigh the cost of beginning a pass.
constexpr std::size_t arriving_bytes_max = 256 * 1024;
constexpr std::size_t arriving_bytes_min = 64 * 1024;

constexpr std::size_t destinations_max = 64;  // of a pass that offers: number of bits of ChannelState::offered

}  // namespace

Result<bool> Run::pass_direct(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget) {
  const Range range = range_of(action, state.tile);
  if (range.count == 0) return true;
  const Piece whole{.at = range.begin, .count = range.count};
  if (!state.begun) {
    if (!keep(channel, action, whole)) return false;
    TUTTI_TRY(check_offered(channel, action, whole));
    state.offered = offer(channel, action, whole);
    state.begun = true;
  }
  auto finished = lands(channel, state, action) ? land(channel, state, action, whole, budget)
                                                : move_pieces(channel, state, action, whole, budget);
  if (!finished || !*finished) return finished;
  state.begun = false;
  state.pass_done = 0;
  return true;
}

/// The destinations that must still be written: all of the plan's, or those copied to `rest`.
std::span<const Place> Run::written(const ChannelState& state, const Action& action, std::span<Place> rest) const {
  const auto to = plan_->destinations(action);
  if (state.offered == 0) return to;
  std::size_t left = 0;
  for (std::size_t i = 0; i < to.size(); ++i)
    if ((state.offered >> i & 1) == 0) rest[left++] = to[i];
  return rest.first(left);
}

Result<bool> Run::move_pieces(Channel& channel, ChannelState& state, const Action& action, const Piece& whole,
                              std::size_t& budget) {
  Place rest[destinations_max];
  const std::span<const Place> to = written(state, action, rest);
  if (to.empty()) return true;
  const std::size_t operands = action.sources + to.size(), size = binding_->split.element_bytes();
  while (state.pass_done < whole.count) {
    if (budget == 0) return false;
    Piece piece{.at = whole.at + state.pass_done, .skipped = state.pass_done, .count = whole.count - state.pass_done};
    auto here = TUTTI_TRY(arrived(channel, action, piece));
    if (here == 0) return false;
    piece.count = std::min(here, piece_elements(channel, action, budget));
    TUTTI_TRY(move(channel, action, to, piece));
    state.pass_done += piece.count;
    budget -= std::min(budget, operands * piece.count * size);
  }
  return true;
}

/// Notes which blocks of the peeked message lie in its sender's memory.
Result<void> Run::find_offered(Channel& channel, const Action& action) const {
  Offers* const offers = channel.receivers[action.peer]->offers();
  if (offers == nullptr) return {};
  auto& offered = channel.open[action.peer].offered;
  for (std::size_t item = 0; item < action.items; ++item) {
    auto found = offers->offered(item * binding_->split.stride());
    if (!found) return std::move(found).error().at_peer(action.peer);
    if (found->at.data() == nullptr) continue;
    offered.resize(action.items);
    offered[item] = *found;
  }
  return {};
}

/// Each source that a peer has offered must have at least the bytes that the pass reads.
Result<void> Run::check_offered(const Channel& channel, const Action& action, const Piece& whole) const {
  const std::size_t bytes = whole.count * binding_->split.element_bytes();
  for (const Place& place : plan_->sources(action)) {
    if (place.where != Where::slot || channel.open[place.peer].offered.empty()) continue;
    const auto& offered = channel.open[place.peer].offered[place.block];
    if (offered.at.data() != nullptr && offered.at.size() < bytes)
      return Error{.code = Code::remote,
                   .what = fmt::format("offers a block of {} bytes, expected {} bytes", offered.at.size(), bytes),
                   .peer = place.peer};
  }
  return {};
}

/// Messages that have not left yet may be sent from buffers that the pass is about to write: makes their senders keep
/// this data. False: a peer is yet to read it.
bool Run::keep(Channel& channel, const Action& action, const Piece& whole) const {
  bool kept = true;
  for (const Place& place : plan_->destinations(action)) {
    if (!is_written(place)) continue;
    const std::byte* const source = copies_one(action) ? source_of(channel, plan_->sources(action)[0], whole) : nullptr;
    if (source == destination_of(channel, place, whole)) continue;  // in place, a block that stays as it is
    const std::span<const std::byte> changing(destination_of(channel, place, whole),
                                              whole.count * binding_->split.element_bytes());
    for (const std::uint16_t peer : channel.unsent) kept = tutti::kept(*channel.senders[peer], changing) && kept;
  }
  return kept;
}

/// The address of the block in a buffer of the call, now or after the pass; nullptr: the block lies in no such buffer.
const std::byte* Run::lasting(const Channel& channel, const Action& action, const Piece& whole) const {
  const Place* const place = lasting_place(*plan_, action, scales_);
  return place == nullptr ? nullptr : source_of(channel, *place, whole);
}

/// Offers senders the block in the call's buffer, to send it from there instead of from a copy in a slot. Returns the
/// destinations that need not be written, as bits.
std::uint64_t Run::offer(Channel& channel, const Action& action, const Piece& whole) const {
  const auto to = plan_->destinations(action);
  const std::byte* const from = to.size() <= destinations_max ? lasting(channel, action, whole) : nullptr;
  if (from == nullptr) return 0;
  const std::span block(from, whole.count * binding_->split.element_bytes());
  std::uint64_t offered = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::uint16_t peer = to[i].peer;
    if (to[i].where != Where::slot || channel.open[peer].filling.data() == nullptr) continue;
    Offering* const offering = channel.senders[peer]->offering();
    if (offering == nullptr || (!offering->copies_offers() && !outlasts(action, i))) continue;
    if (!offering->offer(to[i].block * binding_->split.stride(), block)) continue;
    offered |= std::uint64_t{1} << i;
    // keep must consider this peer from now on.
    if (std::ranges::find(channel.unsent, peer) == channel.unsent.end()) channel.unsent.push_back(peer);
  }
  return offered;
}

/// Whether the block of a destination stays as it is until the message's receiver needs nothing more of this rank.
bool Run::outlasts(const Action& action, std::size_t destination) const {
  const std::size_t at = action.first + action.sources + destination;
  return at < plan_->outlasts.size() && plan_->outlasts[at];
}

/// Whether the pass copies an arriving block that can be received directly into a buffer of the call.
bool Run::lands(const Channel& channel, const ChannelState& state, const Action& action) const {
  return action.verb == Verb::copy && channel.open[plan_->sources(action)[0].peer].arriving != nullptr &&
         tutti::lands(*plan_, state.action);
}

Result<bool> Run::land(Channel& channel, ChannelState& state, const Action& action, const Piece& whole,
                       std::size_t& budget) {
  const Place& from = plan_->sources(action)[0];
  const Place& first = *landing_place(*plan_, action);
  const std::size_t size = binding_->split.element_bytes();
  const std::span into(destination_of(channel, first, whole), whole.count * size);
  auto landed = channel.open[from.peer].arriving->land(from.block * binding_->split.stride(), into);
  if (!landed) return std::move(landed).error().at_peer(from.peer);
  budget -= std::min(budget, 2 * (*landed - std::min(*landed, state.pass_done * size)));
  state.pass_done = *landed / size;
  if (*landed < into.size()) return false;
  Place rest[destinations_max];
  for (const Place& place : written(state, action, rest)) {
    std::byte* const destination = destination_of(channel, place, whole);
    if (destination != into.data()) copy_pass(into.data(), {&destination, 1}, into.size(), Loop::plain);
  }
  return true;
}

/// The number of remaining elements of a pass that can be moved now; zero: too few to begin.
Result<std::size_t> Run::arrived(Channel& channel, const Action& action, const Piece& left) const {
  const std::size_t size = binding_->split.element_bytes();
  std::size_t count = left.count;
  for (const Place& place : plan_->sources(action)) {
    if (place.where != Where::slot || channel.open[place.peer].arriving == nullptr) continue;
    const std::size_t at = place.block * binding_->split.stride() + left.skipped * size;
    auto here = channel.open[place.peer].arriving->arrived(at, std::min(left.count * size, arriving_bytes_max));
    if (!here) return std::move(here).error().at_peer(place.peer);
    count = std::min(count, *here / size);
  }
  return count < left.count && count * size < arriving_bytes_min ? 0 : count;
}

}  // namespace tutti
