#include "analysis/proof/check_channel.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/proof/check_operands.h"

namespace tutti::proof {

/// Only slots have several tiles and channels.
Stage::Stage(const CheckedCall& checked, const CheckCase& how)
    : call(&checked),
      terms(*checked.schedule),
      access(checked.plans[0].access),
      items_max(checked.plans[0].items_max),
      tiles(access == Access::slots ? std::max(how.tiles, 1) : 1),
      channels(std::clamp(how.channels, 1, tiles)),
      memory(*checked.schedule, tiles, checked.in_place) {}

Cell& Channel::cell(const Place& p) const {
  const int block = static_cast<int>(p.block);
  Memory& memory = stage->memory;
  switch (p.where) {
    case Where::input: return memory.at(rank, Buffer::input, block, tile);
    case Where::output: return memory.at(rank, Buffer::output, block, tile);
    case Where::peer_input: return memory.at(p.peer, Buffer::input, block, tile);
    case Where::peer_output: return memory.at(p.peer, Buffer::output, block, tile);
    case Where::scratch:
    case Where::slot:
    case Where::peer_payload: break;
  }
  return memory.at(rank, Buffer::scratch, block, tile);
}

bool Channel::left_alone(const Place& source, const Place& destination) const {
  const bool buffers = source.where < Where::slot && destination.where < Where::slot;
  const bool scales = source.contribution && stage->adds();
  return buffers && !scales && &cell(source) == &cell(destination);
}

Error Channel::wrong(std::string what) const {
  const std::vector<Action>& actions = plan().actions;
  const int at =
      actions.empty() ? 0 : static_cast<int>(actions[std::min<std::size_t>(action, actions.size() - 1)].step);
  return Error{.code = Code::internal,
               .what = fmt::format("{} (action {}, tile {}, call {})", what, action, tile, call),
               .peer = rank,
               .channel = channel,
               .step = at};
}

Error Channel::race(const Place& p, bool written, const Conflict& with) const {
  return wrong(fmt::format("race: {} {} while rank {} {} it", written ? "writes" : "reads", describe(p, written),
                           with.other, with.other_wrote ? "writes" : "reads"));
}

Channels::Channels(int ranks, int per_rank, Clocks& clocks) : per_rank_(per_rank) {
  for (Rank rank = 0; rank < ranks; ++rank)
    for (int channel = 0; channel < per_rank; ++channel) {
      all_.push_back({.rank = rank, .channel = channel, .now = clocks.take()});
      clocks.clear(all_.back().now);
      clocks.tick(all_.back().now, rank);
    }
}

void Channels::wake(Rank rank, int channel) {
  Channel& l = at(rank, channel);
  if (!l.waiting || l.done) return;
  l.waiting = false;
  ready_.push_back(static_cast<std::uint32_t>(index(rank, channel)));
}

Channel* Channels::next() {
  if (ready_.empty()) return nullptr;
  Channel& l = all_[ready_.back()];
  ready_.pop_back();
  l.waiting = true;
  return &l;
}

}  // namespace tutti::proof
