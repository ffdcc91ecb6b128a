// The passes of a Run: translates places to addresses, and handles memory that can only be copied from (CMA).
#include <algorithm>
#include <cassert>
#include <cstring>

#include "exec/pull.h"
#include "exec/run.h"

namespace tutti {
namespace {

constexpr std::size_t cut_bytes = 4096;  // a pass is cut at multiples of this: pieces stay aligned like the whole
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t destinations_max = 64;  // per call of reduce_pass; further ones are copied from the first

/// How far `one` lies behind `other`, modulo a page.
std::size_t page_offset(const std::byte* one, const std::byte* other) {
  return (reinterpret_cast<std::uintptr_t>(one) - reinterpret_cast<std::uintptr_t>(other)) % page_bytes;
}

/// Where the kernel copies slowly on some processors: the destination 1 to 31 bytes behind the source, modulo a page.
bool slightly_apart(const std::byte* source, const std::byte* destination) {
  constexpr std::size_t slow_below = 32;
  const std::size_t offset = page_offset(destination, source);
  return offset != 0 && offset < slow_below;
}

}  // namespace

Result<bool> Run::pass(Channel& channel, ChannelState& state, const Action& action, std::size_t& budget) {
  if (direct_) return pass_direct(channel, state, action, budget);
  const Range range = range_of(action, state.tile);
  const std::size_t operands = action.sources + action.destinations;
  const std::size_t size = binding_->split.element_bytes();
  while (state.pass_done < range.count) {
    if (budget == 0) return false;
    Piece piece{.at = range.begin + state.pass_done, .skipped = state.pass_done};
    const std::size_t left = range.count - state.pass_done;
    const bool small = left * size <= cut_bytes;
    piece.count = small ? left : std::min(left, piece_elements(channel, action, budget));
    TUTTI_TRY(move(channel, action, plan_->destinations(action), piece));
    state.pass_done += piece.count;
    budget -= std::min(budget, operands * piece.count * size);
  }
  state.pass_done = 0;
  return true;
}

/// Avoids the divisions of a cut if there is nothing to cut: they would slow down the smallest calls.
Range Run::range_of(const Action& action, std::size_t tile) const {
  const Split& split = binding_->split;
  if (groups_differ_) [[unlikely]]
    return split.tile_of_group(elements_of(action), tile);
  if (plan_->parts == 1 && split.tiles() == 1) return {.begin = 0, .count = split.count()};
  return split.tile_of(static_cast<int>(action.part), tile);
}

/// The size of the group that a pass belongs to, if groups differ. Each pass of a plan for such calls has a place in a
/// buffer of this rank, or is part of a sum that becomes this rank's only output group.
std::size_t Run::elements_of(const Action& action) const {
  for (const auto& places : {plan_->destinations(action), plan_->sources(action)})
    for (const Place& place : places) {
      if (place.where == Where::input) return binding_->input_groups[place.block].count;
      if (place.where == Where::output) return binding_->output_groups[place.block].count;
      if (place.where == Where::scratch) return binding_->output_groups[0].count;
    }
  assert(false && "a plan that does not serve groups of different sizes");
  return 0;
}

/// For acquire and peek in a direct plan, where a message holds one block whose size both ends know.
bool Run::is_empty_message(const ChannelState& state, const Action& action) const {
  const auto groups = action.verb == Verb::acquire ? binding_->input_groups : binding_->output_groups;
  const std::size_t count = groups[groups.size() == 1 ? 0 : std::size_t{action.peer}].count;
  return binding_->split.tile_of_group(count, state.tile).count == 0;
}

/// The number of elements of a pass that may be moved at once. What is pulled must fit the bounce buffer, unless it is
/// only copied: every system call costs as much as pulling some kilobytes.
std::size_t Run::piece_elements(const Channel& channel, const Action& action, std::size_t budget) const {
  const std::size_t operands = action.sources + action.destinations;
  std::size_t bytes = std::max(budget / operands / cut_bytes, std::size_t{1}) * cut_bytes;
  if (pulls(channel, action) && !copies_one(action))
    bytes = std::min(bytes, rules().bounce_bytes / action.sources / cut_bytes * cut_bytes);
  return bytes / binding_->split.element_bytes();
}

Result<void> Run::move(Channel& channel, const Action& action, std::span<const Place> to, const Piece& piece) {
  const auto from = plan_->sources(action);
  if (copies_one(action) && process_of(channel, from[0])) return move_pulled_copy(channel, action, to, piece);

  Source sources[limits::sources_max];
  assert(from.size() <= limits::sources_max);
  for (std::size_t i = 0; i < from.size(); ++i) set_source(sources[i], channel, from[i], piece);
  const std::span<Source> used(sources, from.size());
  const bool weighted = weights_ && is_weighted(action, from);
  if (weighted)
    for (std::size_t i = 0; i < from.size(); ++i) sources[i].scalar = weight_bits(binding_->type, from[i].halvings);
  if (pulls(channel, action)) TUTTI_TRY(pull_sources(channel, action, piece, used));

  std::byte* destinations[destinations_max];
  const std::size_t first = std::min(to.size(), destinations_max);
  for (std::size_t i = 0; i < first; ++i) destinations[i] = destination_of(channel, to[i], piece);
  const Loop loop = always_plain_ ? Loop::plain : loop_of(action, piece);
  reduce_pass({.sources = used,
               .destinations = {destinations, first},
               .count = piece.count,
               .type = binding_->type,
               .op = binding_->op,
               .divisor = average_ && action.last != 0 ? plan_->ranks : 1,
               .loop = loop,
               .weighted = weighted,
               .halvings = static_cast<std::uint8_t>(action.halvings),
               .user = binding_->user});
  for (std::size_t i = first; i < to.size(); ++i) {
    std::byte* const destination = destination_of(channel, to[i], piece);
    copy_pass(destinations[0], {&destination, 1}, piece.count * size_of(binding_->type), loop);
  }
  return {};
}

/// Reads directly into the first destination, and copies from there to the others.
Result<void> Run::move_pulled_copy(Channel& channel, const Action& action, std::span<const Place> to,
                                   const Piece& piece) {
  const Place& from = plan_->sources(action)[0];
  const std::span into(destination_of(channel, to[0], piece), piece.count * size_of(binding_->type));
  const std::byte* const source = source_of(channel, from, piece);
  if (rules().realigns && slightly_apart(source, into.data()) && into.size() > cut_bytes)
    return move_pulled_copy_apart(channel, action, to, piece);
  auto pulled = pull(process_of(channel, from), source, into);
  if (!pulled) return std::move(pulled).error().at_peer(from.peer);
  for (const Place& place : to.subspan(1)) {
    std::byte* const destination = destination_of(channel, place, piece);
    copy_pass(into.data(), {&destination, 1}, into.size(), Loop::plain);
  }
  return {};
}

/// As move_pulled_copy, through the bounce buffer.
Result<void> Run::move_pulled_copy_apart(Channel& channel, const Action& action, std::span<const Place> to,
                                         const Piece& piece) {
  const std::size_t most = rules().bounce_bytes / size_of(binding_->type);
  for (std::size_t done = 0; done < piece.count; done += most) {
    const Piece part{
        .at = piece.at + done, .skipped = piece.skipped + done, .count = std::min(most, piece.count - done)};
    std::size_t used = 0;
    auto pulled = TUTTI_TRY(pull_to_bounce(channel, plan_->sources(action)[0], part, used));
    for (const Place& place : to) {
      std::byte* const destination = destination_of(channel, place, part);
      copy_pass(pulled, {&destination, 1}, part.count * size_of(binding_->type), Loop::plain);
    }
  }
  return {};
}

/// Copies sources in other processes into this channel's bounce buffer.
Result<void> Run::pull_sources(Channel& channel, const Action& action, const Piece& piece, std::span<Source> sources) {
  const auto from = plan_->sources(action);
  std::size_t used = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!process_of(channel, from[i])) continue;
    sources[i].at = TUTTI_TRY(pull_to_bounce(channel, from[i], piece, used));
  }
  return {};
}

/// Where the source lies then. Source and copy agree modulo a page: the kernel's copy can be several times as slow
/// where they are a few bytes apart (decision 18). `used`: bytes of the buffer that are taken; increased.
Result<std::byte*> Run::pull_to_bounce(Channel& channel, const Place& from, const Piece& piece, std::size_t& used) {
  if (channel.bounce.bytes() == 0)
    TUTTI_TRY(channel.bounce.allocate(rules().bounce_bytes + 2 * page_bytes * limits::sources_max));
  const std::size_t bytes = piece.count * size_of(binding_->type);
  const std::byte* const source = source_of(channel, from, piece);
  std::byte* const free = channel.bounce.data() + used;
  const std::size_t skipped = page_offset(source, free);
  used += skipped + bytes;
  assert(used <= channel.bounce.bytes());
  auto pulled = pull(process_of(channel, from), source, {free + skipped, bytes});
  if (!pulled) return std::move(pulled).error().at_peer(from.peer);
  return free + skipped;
}

/// Whether the pass only copies one source, as it is.
bool Run::copies_one(const Action& action) const {
  return action.verb == Verb::copy && action.sources == 1 && !scales(plan_->sources(action)[0]);
}

ForeignProcess Run::process_of(const Channel& channel, const Place& place) const {
  if (place.where == Where::slot) {
    const auto& offered = channel.open[place.peer].offered;
    return offered.empty() ? ForeignProcess{} : offered[place.block].process;
  }
  const bool peers = place.where == Where::peer_input || place.where == Where::peer_output;
  return peers ? binding_->peers[place.peer].process : ForeignProcess{};
}

/// Whether some source can only be copied from its process.
bool Run::pulls(const Channel& channel, const Action& action) const {
  if (plan_->access != Access::cma && !direct_) return false;
  return std::ranges::any_of(plan_->sources(action),
                             [&](const Place& place) { return static_cast<bool>(process_of(channel, place)); });
}

/// Sets the fields one by one: a copy of a struct that was just written would wait until all its fields are stored.
void Run::set_source(Source& source, const Channel& channel, const Place& place, const Piece& piece) const {
  source.at = source_of(channel, place, piece);
  source.scaled = scales(place);
  if (!source.scaled) return;
  const auto owner = place.where == Where::peer_input ? static_cast<Rank>(place.peer) : plan_->rank;
  source.scalar = binding_->scalars[static_cast<std::size_t>(owner)];
}

std::byte* Run::in_buffer(const Place& place, std::byte* base, const Piece& piece) const {
  const std::size_t group = place.block / static_cast<std::uint32_t>(plan_->parts);
  std::size_t begin = group * binding_->split.count();
  if (groups_differ_) [[unlikely]]
    begin = begin_of(place);
  return base + (begin + piece.at) * binding_->split.element_bytes();
}

/// The start of a group in elements, if groups differ. A peer's memory holds only one group.
std::size_t Run::begin_of(const Place& place) const {
  switch (place.where) {
    case Where::input: return binding_->input_groups[place.block].begin;
    case Where::output: return binding_->output_groups[place.block].begin;
    case Where::scratch: return place.block * binding_->split.count();
    case Where::slot:
    case Where::peer_input:
    case Where::peer_output:
    case Where::peer_payload: break;
  }
  return 0;
}

const std::byte* Run::source_of(const Channel& channel, const Place& place, const Piece& piece) const {
  const auto readable = [](const std::byte* base) { return const_cast<std::byte*>(base); };
  switch (place.where) {
    case Where::input: return in_buffer(place, readable(binding_->input), piece);
    case Where::peer_input: return in_buffer(place, binding_->peers[place.peer].input, piece);
    case Where::peer_payload: return in_buffer(place, readable(channel.open[place.peer].line), piece);
    case Where::slot: {
      const auto& open = channel.open[place.peer];
      if (!open.offered.empty() && open.offered[place.block].at.data() != nullptr)
        return open.offered[place.block].at.data() + piece.skipped * binding_->split.element_bytes();
      const auto message = open.reading;
      const std::size_t at = place.block * binding_->split.stride() + piece.skipped * binding_->split.element_bytes();
      assert(at + piece.count * binding_->split.element_bytes() <= message.size());
      return message.data() + at;
    }
    case Where::output:
    case Where::scratch:
    case Where::peer_output: break;
  }
  return destination_of(channel, place, piece);
}

std::byte* Run::destination_of(const Channel& channel, const Place& place, const Piece& piece) const {
  switch (place.where) {
    case Where::output: return in_buffer(place, binding_->output, piece);
    case Where::scratch: return in_buffer(place, binding_->scratch, piece);
    case Where::peer_output: return in_buffer(place, binding_->peers[place.peer].output, piece);
    case Where::slot: {
      const auto message = channel.open[place.peer].filling;
      const std::size_t at = place.block * binding_->split.stride() + piece.skipped * binding_->split.element_bytes();
      assert(at + piece.count * binding_->split.element_bytes() <= message.size());
      return message.data() + at;
    }
    case Where::input:
    case Where::peer_input:
    case Where::peer_payload: break;
  }
  assert(false && "a place that is only read");
  return nullptr;
}

/// Whether all that the pass writes are messages.
bool Run::writes_messages(const Action& action) const {
  return std::ranges::all_of(plan_->destinations(action), [](const Place& to) { return to.where == Where::slot; });
}

Loop Run::loop_of(const Action& action, const Piece& piece) const {
  if (piece.count * binding_->split.element_bytes() >= rules().streamed_bytes && writes_messages(action))
    return Loop::nontemporal;
  if (!writes_results(*plan_, action)) return Loop::plain;
  if (pulled_loop_ && makes_pulled_sums(*plan_, action)) return *pulled_loop_;
  if (loops_ == nullptr) return loop_;
  const bool own = !is_far(plan_->sources(action)[0]);
  return loops_->at(pass_class(action.sources, action.destinations, own), loop_footprint_);
}

}  // namespace tutti
