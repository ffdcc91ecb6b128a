// Passes of large blocks between fifos: messages that leave from the buffers of the call, that land in them, and that
// are reduced while they still come, on wires that can.
#include <algorithm>
#include <cassert>

#include "exec/run.h"

namespace tutti {
namespace {

/// What is reduced at once while the rest still comes: it stays in the second-level cache between the two, and is large
/// beside what a pass costs to begin.
constexpr std::size_t arriving_bytes_max = 256 * 1024;
constexpr std::size_t arriving_bytes_min = 64 * 1024;

constexpr std::size_t destinations_max = 64;  // of a pass that offers; more are all written

bool own(const Place& place) {
  return place.where == Where::output || place.where == Where::scratch;
}

}  // namespace

Result<bool> Run::pass_direct(Lane& lane, LaneState& state, const Action& action, std::size_t& budget) {
  const Range range = range_of(action, state.tile);
  if (range.count == 0) return true;
  const Piece whole{.at = range.begin, .count = range.count};
  if (state.pass_done == 0) keep(lane, action, whole);
  Place rest[destinations_max];
  const std::span<const Place> to = offer(lane, action, whole, rest);
  if (to.empty()) return true;
  if (lands(lane, state, action)) return land(lane, state, action, to, whole);

  const std::size_t operands = action.sources + to.size(), size = binding_->split.element_bytes();
  while (state.pass_done < range.count) {
    if (budget == 0) return false;
    Piece piece{
        .at = range.begin + state.pass_done, .skipped = state.pass_done, .count = range.count - state.pass_done};
    auto here = arrived(lane, action, piece);
    if (!here) return std::move(here).error();
    if (*here == 0) return false;
    piece.count = std::min(*here, piece_elements(action, budget));
    if (auto moved = move(lane, action, to, piece); !moved) return std::move(moved).error();
    state.pass_done += piece.count;
    budget -= std::min(budget, operands * piece.count * size);
  }
  state.pass_done = 0;
  return true;
}

/// Messages that have not all left may lie in what the pass is about to write.
void Run::keep(Lane& lane, const Action& action, const Piece& whole) const {
  if (lane.unsent.empty()) return;
  for (const Place& place : plan_->destinations(action)) {
    if (!own(place)) continue;
    const std::span<const std::byte> changing(destination_of(lane, place, whole),
                                              whole.count * binding_->split.element_bytes());
    for (const std::uint16_t peer : lane.unsent) lane.senders[peer]->keep(changing);
  }
}

/// Where the block lies, or will when the pass is done, in a buffer of the call; nullptr: nowhere.
const std::byte* Run::lasting(const Lane& lane, const Action& action, const Piece& whole) const {
  const Place& source = plan_->sources(action)[0];
  const bool copies_own = action.verb == Verb::copy && (own(source) || source.where == Where::input);
  if (copies_own && !scales(source)) return source_of(lane, source, whole);
  const auto to = plan_->destinations(action);
  const auto kept = std::ranges::find_if(to, own);
  return kept == to.end() ? nullptr : destination_of(lane, *kept, whole);
}

/// Has messages leave from where the block lasts instead of a copy in their slot. The destinations still to be written,
/// in `rest` or the plan.
std::span<const Place> Run::offer(Lane& lane, const Action& action, const Piece& whole, std::span<Place> rest) const {
  const auto to = plan_->destinations(action);
  const std::byte* const from = to.size() <= rest.size() ? lasting(lane, action, whole) : nullptr;
  if (from == nullptr) return to;
  const std::span block(from, whole.count * binding_->split.element_bytes());
  std::size_t left = 0;
  for (const Place& place : to) {
    const bool leaves = place.where == Where::slot && lane.open[place.peer].filling.data() != nullptr;
    if (!leaves || !lane.senders[place.peer]->offer(place.block * binding_->split.stride(), block)) {
      rest[left++] = place;
    } else if (std::ranges::find(lane.unsent, place.peer) == lane.unsent.end()) {
      lane.unsent.push_back(place.peer);  // from now on keep has to ask
    }
  }
  return rest.first(left);
}

/// Whether the one block that is read goes straight into a buffer of the call: nobody reads it again in its message.
bool Run::lands(const Lane& lane, const LaneState& state, const Action& action) const {
  const Place& from = plan_->sources(action)[0];
  if (action.verb != Verb::copy || from.where != Where::slot || !lane.open[from.peer].arriving) return false;
  if (std::ranges::none_of(plan_->destinations(action), own)) return false;
  for (std::size_t i = state.action + 1; i < plan_->actions.size(); ++i) {
    const Action& later = plan_->actions[i];
    if (later.verb == Verb::release && later.peer == from.peer) break;
    if (later.verb != Verb::copy && later.verb != Verb::reduce) continue;
    const auto same = [&](const Place& p) {
      return p.where == Where::slot && p.peer == from.peer && p.block == from.block;
    };
    if (std::ranges::any_of(plan_->sources(later), same)) return false;
  }
  return true;
}

Result<bool> Run::land(Lane& lane, LaneState& state, const Action& action, std::span<const Place> to,
                       const Piece& whole) {
  const Place& from = plan_->sources(action)[0];
  const Place& first = *std::ranges::find_if(plan_->destinations(action), own);
  const std::size_t size = binding_->split.element_bytes();
  const std::span into(destination_of(lane, first, whole), whole.count * size);
  auto landed = lane.receivers[from.peer]->land(from.block * binding_->split.stride(), into);
  if (!landed) return std::move(landed).error().at_peer(from.peer);
  state.pass_done = *landed / size;
  if (*landed < into.size()) return false;
  state.pass_done = 0;
  for (const Place& place : to) {
    std::byte* const destination = destination_of(lane, place, whole);
    if (destination != into.data()) copy_pass(into.data(), {&destination, 1}, into.size(), false);
  }
  return true;
}

/// How many elements of what is left of a pass can be moved now. Zero: too few to begin with.
Result<std::size_t> Run::arrived(Lane& lane, const Action& action, const Piece& left) const {
  const std::size_t size = binding_->split.element_bytes();
  std::size_t count = left.count;
  for (const Place& place : plan_->sources(action)) {
    if (place.where != Where::slot || !lane.open[place.peer].arriving) continue;
    const std::size_t at = place.block * binding_->split.stride() + left.skipped * size;
    auto here = lane.receivers[place.peer]->arrived(at, std::min(left.count * size, arriving_bytes_max));
    if (!here) return std::move(here).error().at_peer(place.peer);
    count = std::min(count, *here / size);
  }
  return count < left.count && count * size < arriving_bytes_min ? 0 : count;
}

}  // namespace tutti
