#include "support/plan_kernel.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/limits.h"
#include "exec/reduce.h"

namespace tutti::testing {
namespace {

/// By rank: what ranks bring to a call of lines, which nobody waits to be read.
using Inputs = std::vector<std::vector<std::byte>>;

bool is_of_lines(const device::Call& call) {
  const auto& rank = call.local[0];
  return std::any_of(rank.actions, rank.actions + rank.action_count,
                     [](const Action& action) { return action.verb == Verb::wait_descriptor; });
}

/// What one channel of one rank does.
class ChannelOfRank {
 public:
  ChannelOfRank(const device::Call& call, const Inputs& lines, std::uint32_t local, std::uint32_t channel)
      : call_(call),
        lines_(lines),
        own_(call.local[local]),
        links_(own_.links + std::size_t{channel} * call.ranks),
        tile_(channel) {}

  bool done() const { return tile_ >= call_.cut.tiles && tile_ != 0; }

  /// As far as it goes; whether that was anything.
  bool advance() {
    bool moved = false;
    while (!done()) {
      if (action_ == own_.action_count) {
        action_ = 0;
        tile_ += call_.channels;
      } else if (act(own_.actions[action_])) {
        ++action_;
      } else {
        return moved;
      }
      moved = true;
    }
    return moved;
  }

 private:
  bool act(const Action& action) {
    device::Link& link = links_[action.peer];
    switch (action.verb) {
      case Verb::copy:
      case Verb::reduce: pass(action); return true;
      case Verb::signal: *link.flag_there = ++link.raised; return true;
      case Verb::wait:
        if (*link.flag_here <= link.taken) return false;
        ++link.taken;
        return true;
      case Verb::wait_descriptor: return true;
      default: return false;  // no verb of windows
    }
  }

  const device::PeerBuffers* buffers() const { return call_.table != nullptr ? call_.table : call_.buffers; }

  std::size_t part_begin(std::size_t part) const {
    const device::Cut& cut = call_.cut;
    const std::size_t units = (cut.count + cut.unit - 1) / cut.unit;
    return std::min<std::size_t>(
        cut.count, (part * (units / cut.parts) + std::min<std::size_t>(part, units % cut.parts)) * cut.unit);
  }

  std::byte* at(const Place& place, std::size_t in_group) const {
    const device::Cut& cut = call_.cut;
    const auto base = [&]() -> std::byte* {
      switch (place.where) {
        case Where::input: return const_cast<std::byte*>(own_.input);
        case Where::output: return own_.output;
        case Where::scratch: return own_.scratch;
        case Where::peer_input: return const_cast<std::byte*>(buffers()[place.peer].input);
        case Where::peer_payload: return const_cast<std::byte*>(lines_[place.peer].data());
        case Where::peer_output: return buffers()[place.peer].output;
        default: return nullptr;
      }
    }();
    const std::size_t group = place.block / cut.parts;
    return base + (group * cut.count + in_group) * cut.element_bytes;
  }

  void pass(const Action& action) {
    const device::Cut& cut = call_.cut;
    const std::size_t whole = part_begin(action.part + 1) - part_begin(action.part);
    const std::size_t skipped = cut.tile_elements == 0 ? 0 : std::min<std::size_t>(whole, tile_ * cut.tile_elements);
    const std::size_t count =
        cut.tile_elements == 0 ? whole : std::min<std::size_t>(cut.tile_elements, whole - skipped);
    const std::size_t begin = part_begin(action.part) + skipped;
    const Place* const places = own_.places + action.first;
    std::vector<Source> sources;
    for (unsigned i = 0; i < action.sources; ++i) {
      const Place& place = places[i];
      const bool line = place.where == Where::peer_payload;  // scaled by whoever sent it, on a host
      const std::uint32_t of = line || place.where == Where::peer_input ? place.peer : own_.rank;
      sources.push_back({.at = at(place, begin),
                         .scaled = call_.scaled != 0 && (line || place.contribution != 0),
                         .scalar = buffers()[of].scalar});
    }
    const bool weighted = call_.average != 0 && averages_by_weights(call_.type) && is_weighted(action, places);
    for (unsigned i = 0; weighted && i < action.sources; ++i)
      sources[i].scalar = weight_bits(call_.type, places[i].halvings);
    std::vector<std::byte*> destinations;
    for (unsigned i = 0; i < action.destinations; ++i) destinations.push_back(at(places[action.sources + i], begin));
    reduce_pass({.sources = sources,
                 .destinations = destinations,
                 .count = count,
                 .type = call_.type,
                 .op = call_.op,
                 .divisor = call_.average != 0 && action.last != 0 ? static_cast<int>(call_.ranks) : 1,
                 .weighted = weighted,
                 .halvings = static_cast<std::uint8_t>(action.halvings)});
  }

  const device::Call& call_;
  const Inputs& lines_;
  const device::RankCall& own_;
  device::Link* links_;
  std::size_t tile_;
  std::uint32_t action_ = 0;
};

}  // namespace

bool run_plans(const device::Call& call) {
  Inputs lines(is_of_lines(call) ? call.ranks : 0);
  for (std::size_t rank = 0; rank < lines.size(); ++rank)
    lines[rank].assign(call.buffers[rank].input, call.buffers[rank].input + call.cut.count * call.cut.element_bytes);
  std::vector<ChannelOfRank> channels;
  for (std::uint32_t local = 0; local < call.local_ranks; ++local)
    for (std::uint32_t channel = 0; channel < call.channels; ++channel)
      channels.emplace_back(call, lines, local, channel);
  for (bool moved = true; moved;) {
    if (std::atomic_ref<std::uint32_t>(*call.abort).load(std::memory_order_acquire) != 0) return false;
    moved = false;
    for (ChannelOfRank& channel : channels) moved = channel.advance() || moved;
  }
  return std::ranges::all_of(channels, [](const ChannelOfRank& channel) { return channel.done(); });
}

}  // namespace tutti::testing
