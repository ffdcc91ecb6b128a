#include "exec/passes.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "base/limits.h"
#include "exec/pull.h"

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

Result<bool> Passes::advance(Channel& channel, Cursor& cursor, const Action& action, std::size_t& budget) const {
  const Range range = bound_.range_of(action, cursor.tile);
  const std::size_t operands = action.sources + action.destinations;
  const std::size_t size = bound_.binding().split.element_bytes();
  while (cursor.pass_done < range.count) {
    if (budget == 0) return false;
    Piece piece{.at = range.begin + cursor.pass_done, .skipped = cursor.pass_done};
    const std::size_t left = range.count - cursor.pass_done;
    const bool small = left * size <= cut_bytes;
    piece.count = small ? left : std::min(left, piece_elements(channel, action, budget));
    TUTTI_TRY(move(channel, action, bound_.plan().destinations(action), piece));
    cursor.pass_done += piece.count;
    budget -= std::min(budget, operands * piece.count * size);
  }
  cursor.pass_done = 0;
  return true;
}

/// What is pulled must fit the bounce buffer, unless it is
/// only copied: every system call costs as much as pulling some kilobytes.
std::size_t Passes::piece_elements(const Channel& channel, const Action& action, std::size_t budget) const {
  const std::size_t operands = action.sources + action.destinations;
  std::size_t bytes = std::max(budget / operands / cut_bytes, std::size_t{1}) * cut_bytes;
  if (pulls(channel, action) && !bound_.copies_one(action))
    bytes = std::min(bytes, loops_.rules().bounce_bytes / action.sources / cut_bytes * cut_bytes);
  return bytes / bound_.binding().split.element_bytes();
}

Result<void> Passes::move(Channel& channel, const Action& action, std::span<const Place> to, const Piece& piece) const {
  const auto from = bound_.plan().sources(action);
  if (bound_.copies_one(action) && bound_.process_of(channel, from[0]))
    return move_pulled_copy(channel, action, to, piece);

  Source sources[limits::sources_max];
  assert(from.size() <= limits::sources_max);
  for (std::size_t i = 0; i < from.size(); ++i) set_source(sources[i], channel, from[i], piece);
  const std::span<Source> used(sources, from.size());
  const bool weighted = weights_ && is_weighted(action, from);
  if (weighted)
    for (std::size_t i = 0; i < from.size(); ++i)
      sources[i].scalar = weight_bits(bound_.binding().type, from[i].halvings);
  if (pulls(channel, action)) TUTTI_TRY(pull_sources(channel, action, piece, used));

  std::byte* destinations[destinations_max];
  const std::size_t first = std::min(to.size(), destinations_max);
  for (std::size_t i = 0; i < first; ++i) destinations[i] = bound_.destination_of(channel, to[i], piece);
  const Loop loop = loops_.always_plain()
                        ? Loop::plain
                        : loops_.of(bound_.plan(), action, piece.count * bound_.binding().split.element_bytes());
  reduce_pass({.sources = used,
               .destinations = {destinations, first},
               .count = piece.count,
               .type = bound_.binding().type,
               .op = bound_.binding().op,
               .divisor = average_ && action.last != 0 ? bound_.plan().ranks : 1,
               .loop = loop,
               .weighted = weighted,
               .halvings = static_cast<std::uint8_t>(action.halvings),
               .user = bound_.binding().user});
  if (first < to.size()) copy_to(channel, to.subspan(first), piece, destinations[0], loop);
  return {};
}

/// The piece lies at `from`. Does not write a place that does, too.
void Passes::copy_to(const Channel& channel, std::span<const Place> to, const Piece& piece, const std::byte* from,
                     Loop loop) const {
  for (const Place& place : to) {
    std::byte* const destination = bound_.destination_of(channel, place, piece);
    copy_pass(from, {&destination, 1}, piece.count * bound_.binding().split.element_bytes(), loop);
  }
}

/// Reads directly into the first destination, and copies from there to the others.
Result<void> Passes::move_pulled_copy(Channel& channel, const Action& action, std::span<const Place> to,
                                      const Piece& piece) const {
  const Place& from = bound_.plan().sources(action)[0];
  const std::span into(bound_.destination_of(channel, to[0], piece), piece.count * size_of(bound_.binding().type));
  const std::byte* const source = bound_.source_of(channel, from, piece);
  if (loops_.rules().realigns && slightly_apart(source, into.data()) && into.size() > cut_bytes)
    return move_pulled_copy_apart(channel, action, to, piece);
  auto pulled = pull(bound_.process_of(channel, from), source, into);
  if (!pulled) return std::move(pulled).error().at_peer(from.peer);
  copy_to(channel, to.subspan(1), piece, into.data(), Loop::plain);
  return {};
}

/// As move_pulled_copy, through the bounce buffer.
Result<void> Passes::move_pulled_copy_apart(Channel& channel, const Action& action, std::span<const Place> to,
                                            const Piece& piece) const {
  const std::size_t most = loops_.rules().bounce_bytes / size_of(bound_.binding().type);
  for (std::size_t done = 0; done < piece.count; done += most) {
    const Piece part{
        .at = piece.at + done, .skipped = piece.skipped + done, .count = std::min(most, piece.count - done)};
    std::size_t used = 0;
    auto pulled = TUTTI_TRY(pull_to_bounce(channel, bound_.plan().sources(action)[0], part, used));
    copy_to(channel, to, part, pulled, Loop::plain);
  }
  return {};
}

/// Copies sources in other processes into this channel's bounce buffer.
Result<void> Passes::pull_sources(Channel& channel, const Action& action, const Piece& piece,
                                  std::span<Source> sources) const {
  const auto from = bound_.plan().sources(action);
  std::size_t used = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!bound_.process_of(channel, from[i])) continue;
    sources[i].at = TUTTI_TRY(pull_to_bounce(channel, from[i], piece, used));
  }
  return {};
}

/// Where the source lies then. Source and copy agree modulo a page: the kernel's copy can be several times as slow
/// where they are a few bytes apart (decision 18). `used`: bytes of the buffer that are taken; increased.
Result<std::byte*> Passes::pull_to_bounce(Channel& channel, const Place& from, const Piece& piece,
                                          std::size_t& used) const {
  if (channel.bounce.data() == nullptr)
    TUTTI_TRY(channel.bounce.allocate(loops_.rules().bounce_bytes + 2 * page_bytes * limits::sources_max));
  const std::size_t bytes = piece.count * size_of(bound_.binding().type);
  const std::byte* const source = bound_.source_of(channel, from, piece);
  std::byte* const free = channel.bounce.data() + used;
  const std::size_t skipped = page_offset(source, free);
  used += skipped + bytes;
  assert(used <= channel.bounce.bytes());
  auto pulled = pull(bound_.process_of(channel, from), source, {free + skipped, bytes});
  if (!pulled) return std::move(pulled).error().at_peer(from.peer);
  return free + skipped;
}

/// Whether some source can only be copied from its process.
bool Passes::pulls(const Channel& channel, const Action& action) const {
  if (bound_.plan().access != Access::cma && !direct_) return false;
  return std::ranges::any_of(bound_.plan().sources(action),
                             [&](const Place& place) { return static_cast<bool>(bound_.process_of(channel, place)); });
}

/// Sets the fields one by one: a copy of a struct that was just written would wait until all its fields are stored.
void Passes::set_source(Source& source, const Channel& channel, const Place& place, const Piece& piece) const {
  source.at = bound_.source_of(channel, place, piece);
  source.scaled = bound_.scales(place);
  if (!source.scaled) return;
  const auto owner = place.where == Where::peer_input ? static_cast<Rank>(place.peer) : bound_.plan().rank;
  source.scalar = bound_.binding().scalars[static_cast<std::size_t>(owner)];
}

}  // namespace tutti
