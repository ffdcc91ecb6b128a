// Executes the plans of all ranks symbolically: channels, calls, and the end of calls.
#include "analysis/proof/check_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "analysis/proof/check_operands.h"

namespace tutti::proof {
namespace {

int most(std::span<const Stage> stages, int Stage::*number) {
  return (*std::ranges::max_element(stages, {}, number)).*number;
}

bool has_slots(const Stage& stage) {
  return stage.access == Access::slots;
}

Error stuck(const Channel& l) {
  assert(l.entered);  // if no channel were stuck inside a call, all would have entered the next
  if (l.leaving) return l.wrong("deadlock: offered blocks are never read");
  const Action& a = l.plan().actions[l.action];
  return l.wrong(fmt::format("deadlock: {} with rank {} never ends", verb_name(a.verb), a.peer));
}

}  // namespace

Machine::Machine(std::vector<Stage> stages, const CheckCase& how, bool multiplied)
    : ranks_(stages[0].call->schedule->ranks()),
      calls_(std::max(how.calls, 1) * static_cast<int>(stages.size())),
      stages_(std::move(stages)),
      clocks_(ranks_),
      channels_(ranks_, most(stages_, &Stage::channels), clocks_),
      messages_(ranks_, how.slots, std::ranges::any_of(stages_, has_slots) ? channels_.per_rank() : 0,
                most(stages_, &Stage::items_max)),
      entries_(ranks_, channels_.per_rank(), calls_),
      offers_(how.slots == 0 ? std::vector<int>{} : how.hosts, multiplied, channels_, ranks_),
      running_(static_cast<std::size_t>(ranks_)) {
  if (!std::ranges::all_of(stages_, has_slots)) flags_.emplace_back(ranks_);
}

Result<void> Machine::run() {
  for (Rank rank = 0; rank < ranks_; ++rank) begin_call(rank, 0);
  while (Channel* const l = channels_.next()) TUTTI_TRY(advance(*l));
  TUTTI_TRY(all_done());
  return nothing_left();
}

/// A rank's clock has a nonzero time for every rank whose actions came before; it covers one channel only.
Waits Machine::waits(int channel_index) const {
  Waits all;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t* const now = clocks_.at(channels_.at(rank, channel_index).now);
    for (Rank peer = 0; peer < ranks_; ++peer) all.push_back(now[peer] > 0 ? 1 : 0);
  }
  return all;
}

/// The user passes new buffers, written just before, and the rank publishes its call descriptor.
void Machine::begin_call(Rank rank, int call) {
  Stage& s = stage(call);
  running_[static_cast<std::size_t>(rank)] = s.channels;
  std::vector<Moment> written;
  for (int i = 0; i < channels(); ++i) {
    Channel& l = channels_.at(rank, i);
    l.stage = &s;
    l.call = call;
    l.tile = i;
    l.action = 0;
    l.entered = s.access == Access::slots || s.access == Access::in_line;
    if (i >= s.channels) continue;
    written.push_back({static_cast<std::uint32_t>(rank), clocks_.at(l.now)[rank]});
    entries_.begin(l, clocks_);
  }
  s.memory.fill(rank, s.terms, written);
  if (s.access != Access::slots) {
    entries_.publish(channels_.at(rank, 0), clocks_);
    for (Rank peer = 0; peer < ranks_; ++peer) channels_.wake(peer, 0);
  }
  for (int i = 0; i < channels(); ++i) channels_.wake(rank, i);
}

Result<void> Machine::advance(Channel& l) {
  const Stage& s = *l.stage;
  if ((l.tile >= s.tiles && !l.leaving) || !entries_.enter(l, clocks_)) return {};
  const std::vector<Action>& actions = l.plan().actions;
  while (!l.leaving) {
    for (; l.action < actions.size(); ++l.action) {
      auto moved = TUTTI_TRY(step(l, actions[l.action]));
      if (!moved) return {};
    }
    if (l.open != 0) return l.wrong("a message is left open at the end");
    l.tile += s.channels;
    if (l.tile >= s.tiles)
      l.leaving = true;
    else
      l.action = 0;
  }
  if (!offers_.all_read(l, messages_, clocks_)) return {};
  l.leaving = false;
  if (--running_[static_cast<std::size_t>(l.rank)] > 0) return {};
  return end_call(l.rank, l.call);
}

/// From here on the buffers belong to the user, who reads the outputs and overwrites everything at once.
Result<void> Machine::end_call(Rank rank, int call) {
  Stage& s = stage(call);
  TUTTI_TRY(take_outputs(rank, s));
  TUTTI_TRY(take_back(rank, s, Buffer::input));
  TUTTI_TRY(take_back(rank, s, Buffer::output));
  for (int i = 0; s.access == Access::slots && i < channels(); ++i)
    TUTTI_TRY(messages_.all_settled(channels_.at(rank, i)));
  if (call + 1 < calls_) {
    begin_call(rank, call + 1);
  } else {
    for (int i = 0; i < channels(); ++i) channels_.at(rank, i).done = true;
  }
  return {};
}

Result<void> Machine::take_outputs(Rank rank, Stage& s) {
  Terms& terms = s.terms;
  const std::vector<Terms::Id>& wanted = s.outputs[static_cast<std::size_t>(rank)];
  for (int tile = 0; tile < s.tiles; ++tile) {
    Channel& l = channels_.at(rank, tile % s.channels);
    for (int block = 0; block < static_cast<int>(wanted.size()); ++block) {
      const Terms::Id want = wanted[static_cast<std::size_t>(block)];
      Cell& cell = s.memory.at(rank, Buffer::output, block, tile);
      const Place place{.where = Where::output, .block = static_cast<std::uint32_t>(block)};
      if (auto with = note_read(cell, clocks_, rank, l.now); with.found) return l.race(place, false, with);
      const bool must_finish = s.may_average() && ranks_ > 1;
      const bool right = (cell.term == want && !must_finish) || (s.may_average() && cell.term == terms.finished(want));
      if (!right)
        return l.wrong(fmt::format("output block {} ends as {}, the schedule makes {}{}", block, terms.text(cell.term),
                                   must_finish ? "finished " : "", terms.text(want)));
    }
    if (s.collective() == Collective::barrier) TUTTI_TRY(entries_.all_known(l, clocks_));
  }
  return {};
}

Result<void> Machine::take_back(Rank rank, Stage& s, Buffer buffer) {
  const Where where = buffer == Buffer::input ? Where::input : Where::output;
  for (int tile = 0; tile < s.tiles; ++tile) {
    Channel& l = channels_.at(rank, tile % s.channels);
    for (int block = 0; block < s.memory.blocks(rank, buffer); ++block) {
      const Place place{.where = where, .block = static_cast<std::uint32_t>(block)};
      const auto with = note_write(s.memory.at(rank, buffer, block, tile), clocks_, rank, l.now);
      if (with.found) return l.race(place, true, with);
    }
  }
  return {};
}

/// Names the channel nearest to the cause: one that waits for a rank which has finished, else one inside a call.
Result<void> Machine::all_done() {
  const Channel* found = nullptr;
  for (const Channel& l : channels_.all()) {
    const bool waits_for_other_channels = l.tile >= l.stage->tiles && !l.leaving;
    if (l.done || waits_for_other_channels) continue;
    if (awaits_finished_rank(l)) return stuck(l);
    if (!found || (l.entered && !found->entered)) found = &l;
  }
  if (found) return stuck(*found);
  return {};
}

bool Machine::awaits_finished_rank(const Channel& l) const {
  return l.entered && !l.leaving && channels_.at(l.plan().actions[l.action].peer, l.channel).done;
}

Result<void> Machine::nothing_left() {
  for (const Channel& l : channels_.all())
    for (Rank peer = 0; peer < ranks_; ++peer) {
      TUTTI_TRY(messages_.all_taken(l, peer));
      if (!flags_.empty() && l.channel == 0 && flags_[0].pending(l.rank, peer))
        return l.wrong(fmt::format("rank {} never waits for its signal", peer));
    }
  return {};
}

}  // namespace tutti::proof
