// Executes the plans of all ranks symbolically: channels, calls, and the end of calls.
#include "analysis/proof/check_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/proof/check_operands.h"

namespace tutti::proof {
namespace {

/// Only slots have several tiles and channels.
int tiles_of(Access access, const CheckCase& how) {
  return access == Access::slots ? std::max(how.tiles, 1) : 1;
}

}  // namespace

Machine::Stage::Stage(const Program& program_in, const CheckCase& how)
    : program(program_in),
      access(program_in.plans[0].access),
      tiles(tiles_of(access, how)),
      channels(std::clamp(how.channels, 1, tiles)),
      memory(*program_in.schedule, tiles, *program_in.in_place) {}

Machine::Machine(std::span<const Program> programs, const CheckCase& how, bool multiplied)
    : ranks_(programs[0].schedule->ranks()),
      calls_(std::max(how.calls, 1) * static_cast<int>(programs.size())),
      rendezvous_(how.slots == 0),
      hosts_(how.slots == 0 ? std::vector<int>{} : how.hosts),
      multiplied_(multiplied),
      clocks_(ranks_),
      lines_(static_cast<std::size_t>(calls_) * ranks_, Clocks::none),
      published_(static_cast<std::size_t>(calls_)),
      running_(static_cast<std::size_t>(ranks_)) {
  int items_max = 0;
  for (const Program& program : programs) {
    stages_.emplace_back(program, how);
    channels_per_rank_ = std::max(channels_per_rank_, stages_.back().channels);
    items_max = std::max(items_max, program.plans[0].items_max);
  }
  offered_.resize(static_cast<std::size_t>(ranks_) * channels_per_rank_);
  entered_.resize(static_cast<std::size_t>(calls_) * ranks_ * channels_per_rank_);
  const auto any = [this](auto&&... access) {
    return std::ranges::any_of(stages_, [=](const Stage& s) { return ((s.access == access) || ...); });
  };
  for (int channel = 0; channel < channels_per_rank_ && any(Access::slots); ++channel)
    slots_.emplace_back(ranks_, how.slots, items_max);
  if (any(Access::in_line, Access::mapped, Access::cma)) flags_.emplace_back(ranks_);
  if (any(Access::in_line)) opened_.resize(static_cast<std::size_t>(ranks_) * ranks_);
  for (Rank rank = 0; rank < ranks_; ++rank)
    for (int channel = 0; channel < channels_per_rank_; ++channel) {
      channels_.push_back({.rank = rank, .channel = channel, .now = clocks_.take()});
      clocks_.clear(channels_.back().now);
      publish(channels_.back());
    }
}

Result<void> Machine::run() {
  for (Rank rank = 0; rank < ranks_; ++rank) begin_call(rank, 0);
  while (!ready_.empty()) {
    Channel& l = channels_[ready_.back()];
    ready_.pop_back();
    l.waiting = true;
    TUTTI_TRY(advance(l));
  }
  TUTTI_TRY(all_done());
  return nothing_left();
}

/// A rank's clock has a nonzero time for every rank whose actions came before; it covers one channel only.
Waits Machine::waits(int channel_index) const {
  Waits all;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t* const now = clocks_.at(channel(rank, channel_index).now);
    for (Rank peer = 0; peer < ranks_; ++peer) all.push_back(now[peer] > 0 ? 1 : 0);
  }
  return all;
}

void Machine::wake(Rank rank, int channel) {
  const auto index = static_cast<std::size_t>(rank) * channels_per_rank_ + channel;
  if (!channels_[index].waiting || channels_[index].done) return;
  channels_[index].waiting = false;
  ready_.push_back(static_cast<std::uint32_t>(index));
}

/// The user passes new buffers, written just before, and the rank publishes its call descriptor.
void Machine::begin_call(Rank rank, int call) {
  Stage& s = stage(call);
  running_[static_cast<std::size_t>(rank)] = s.channels;
  std::vector<Moment> written;
  for (int i = 0; i < s.channels; ++i) {
    written.push_back({static_cast<std::uint32_t>(rank), clocks_.at(channel(rank, i).now)[rank]});
    entered(call, channel(rank, i)) = written.back().time;
  }
  s.memory.fill(rank, *s.program.terms, written);
  if (s.access != Access::slots) {
    Channel& only = channel(rank, 0);
    Clocks::Row& line = lines_[static_cast<std::size_t>(call) * ranks_ + rank];
    line = clocks_.take();
    clocks_.copy(line, only.now);
    publish(only);
    ++published_[static_cast<std::size_t>(call)];
    for (Rank peer = 0; peer < ranks_; ++peer) wake(peer, 0);
  }
  for (int channel_index = 0; channel_index < channels_per_rank_; ++channel_index) {
    Channel& l = channel(rank, channel_index);
    l.call = call;
    l.tile = channel_index;
    l.action = 0;
    l.entered = s.access == Access::slots || s.access == Access::in_line;
    wake(rank, channel_index);
  }
}

/// Where peers' memory is accessed, the call descriptors of all ranks are the barrier at the entry.
bool Machine::enter(Channel& l) {
  if (l.entered) return true;
  if (published_[static_cast<std::size_t>(l.call)] < ranks_) return false;
  for (Rank peer = 0; peer < ranks_; ++peer)
    clocks_.join(l.now, lines_[static_cast<std::size_t>(l.call) * ranks_ + peer]);
  return l.entered = true;
}

Result<void> Machine::advance(Channel& l) {
  const Stage& s = stage(l);
  if ((l.tile >= s.tiles && !l.leaving) || !enter(l)) return {};
  const std::vector<Action>& actions = plan(l).actions;
  while (!l.leaving) {
    for (; l.action < actions.size(); ++l.action) {
      auto moved = TUTTI_TRY(step(l, actions[l.action]));
      if (!moved) return {};
    }
    if (l.open != 0) return wrong(l, "a message is left open at the end");
    l.tile += s.channels;
    if (l.tile >= s.tiles)
      l.leaving = true;
    else
      l.action = 0;
  }
  if (!all_offers_read(l)) return {};
  l.leaving = false;
  if (--running_[static_cast<std::size_t>(l.rank)] > 0) return {};
  return end_call(l.rank, l.call);
}

/// From here on the buffers belong to the user, who reads the outputs and overwrites everything at once.
Result<void> Machine::end_call(Rank rank, int call) {
  TUTTI_TRY(take_outputs(rank, call));
  const BlockCounts& n = stage(call).memory.counts(rank);
  TUTTI_TRY(take_back(rank, call, Buffer::input, n.input));
  TUTTI_TRY(take_back(rank, call, Buffer::output, n.output));
  if (rendezvous_ && stage(call).access == Access::slots) TUTTI_TRY(take_back_staging(rank));
  if (call + 1 < calls_) {
    begin_call(rank, call + 1);
  } else {
    for (int i = 0; i < channels_per_rank_; ++i) channel(rank, i).done = true;
  }
  return {};
}

Result<void> Machine::take_outputs(Rank rank, int call) {
  Stage& s = stage(call);
  Terms& terms = *s.program.terms;
  const std::vector<Terms::Id>& wanted = (*s.program.outputs)[static_cast<std::size_t>(rank)];
  for (int tile = 0; tile < s.tiles; ++tile) {
    Channel& l = channel(rank, tile % s.channels);
    for (int block = 0; block < static_cast<int>(wanted.size()); ++block) {
      const Terms::Id want = wanted[static_cast<std::size_t>(block)];
      Cell& cell = s.memory.at(rank, Buffer::output, block, tile);
      const Place place{.where = Where::output, .block = static_cast<std::uint32_t>(block)};
      if (auto with = note_read(cell, clocks_, rank, l.now); with.found) return race(l, place, false, with);
      const bool must_finish = may_average(l) && ranks_ > 1;
      const bool right = (cell.term == want && !must_finish) || (may_average(l) && cell.term == terms.finished(want));
      if (!right)
        return wrong(l, fmt::format("output block {} ends as {}, the schedule makes {}{}", block, terms.text(cell.term),
                                    must_finish ? "finished " : "", terms.text(want)));
    }
    if (s.program.schedule->collective() == Collective::barrier) TUTTI_TRY(all_entered(l, call));
  }
  return {};
}

Result<void> Machine::all_entered(const Channel& l, int call) {
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (clocks_.at(l.now)[peer] < entered(call, channel(peer, l.channel)))
      return wrong(l, fmt::format("leaves the barrier before rank {} is known to have entered", peer));
  return {};
}

Result<void> Machine::take_back(Rank rank, int call, Buffer buffer, int blocks) {
  Stage& s = stage(call);
  const Where where = buffer == Buffer::input ? Where::input : Where::output;
  for (int tile = 0; tile < s.tiles; ++tile) {
    Channel& l = channel(rank, tile % s.channels);
    for (int block = 0; block < blocks; ++block) {
      const Place place{.where = where, .block = static_cast<std::uint32_t>(block)};
      const auto with = note_write(s.memory.at(rank, buffer, block, tile), clocks_, rank, l.now);
      if (with.found) return race(l, place, true, with);
    }
  }
  return {};
}

/// With 0 slots, messages lie in the sender's memory, which is free for other use when its call is over.
Result<void> Machine::take_back_staging(Rank rank) {
  for (int channel_index = 0; channel_index < channels_per_rank_; ++channel_index) {
    Channel& l = channel(rank, channel_index);
    for (Rank peer = 0; peer < ranks_; ++peer) {
      const Slots::Link& link = slots_[static_cast<std::size_t>(channel_index)].link(rank, peer);
      if (link.committed > link.known_released)
        return wrong(l, fmt::format("leaves the call while rank {} may still take its message", peer));
    }
  }
  return {};
}

/// Names the channel nearest to the cause: one that waits for a rank which has finished, else one inside a call.
Result<void> Machine::all_done() {
  const Channel* found = nullptr;
  for (const Channel& l : channels_) {
    const bool waits_for_other_channels = l.tile >= stage(l).tiles && !l.leaving;
    if (l.done || waits_for_other_channels) continue;
    if (awaits_finished_rank(l)) return stuck(l);
    if (!found || (l.entered && !found->entered)) found = &l;
  }
  if (found) return stuck(*found);
  return {};
}

bool Machine::awaits_finished_rank(const Channel& l) const {
  return l.entered && !l.leaving && channel(plan(l).actions[l.action].peer, l.channel).done;
}

Error Machine::stuck(const Channel& l) const {
  assert(l.entered);  // if no channel were stuck inside a call, all would have entered the next
  if (l.leaving) return wrong(l, "deadlock: offered blocks are never read");
  const Action& a = plan(l).actions[l.action];
  return wrong(l, fmt::format("deadlock: {} with rank {} never ends", verb_name(a.verb), a.peer));
}

Result<void> Machine::nothing_left() {
  for (Channel& l : channels_)
    for (Rank peer = 0; peer < ranks_; ++peer) {
      if (!slots_.empty()) {
        const Slots::Link& link = slots_[static_cast<std::size_t>(l.channel)].link(l.rank, peer);
        if (link.committed != link.released) return wrong(l, fmt::format("rank {} never takes its message", peer));
      }
      if (!flags_.empty() && l.channel == 0 && flags_[0].pending(l.rank, peer))
        return wrong(l, fmt::format("rank {} never waits for its signal", peer));
    }
  return {};
}

Error Machine::wrong(const Channel& l, std::string what) const {
  const std::vector<Action>& actions = plan(l).actions;
  const int at =
      actions.empty() ? 0 : static_cast<int>(actions[std::min<std::size_t>(l.action, actions.size() - 1)].step);
  return Error{.code = Code::internal,
               .what = fmt::format("{} (action {}, tile {}, call {})", what, l.action, l.tile, l.call),
               .peer = l.rank,
               .channel = l.channel,
               .step = at};
}

Error Machine::race(const Channel& l, const Place& p, bool written, const Conflict& with) const {
  return wrong(l, fmt::format("race: {} {} while rank {} {} it", written ? "writes" : "reads", describe(p, written),
                              with.other, with.other_wrote ? "writes" : "reads"));
}

}  // namespace tutti::proof
