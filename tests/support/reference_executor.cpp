// Runs the plans of all ranks on plain numbers: what each action does.
#include "support/reference_executor.h"

#include <algorithm>

#include "plan/schedule.h"

namespace tutti::testing {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

bool ReferenceExecutor::fail(Outcome outcome, std::string what) {
  if (verdict_.outcome == Outcome::right) verdict_ = {outcome, std::move(what)};
  return false;
}

ReferenceExecutor::Link& ReferenceExecutor::link(const Channel& l, Rank from, Rank to) {
  Link& link = links_[(index(l.channel) * index(ranks_) + index(from)) * index(ranks_) + index(to)];
  if (link.slots.empty()) {
    link.slots.assign(ring_ * slot_words_ + 1, poison);
    link.offered.resize(ring_ * slot_words_ / block_words_max + 1);
  }
  return link;
}

std::uint64_t& ReferenceExecutor::flag(Rank from, Rank to, bool raised) {
  return (raised ? raised_ : taken_)[index(from) * index(ranks_) + index(to)];
}

/// One operand of a pass, or one other action. False: blocked, or over.
bool ReferenceExecutor::turn(Channel& l) {
  if (l.state == State::entering) {
    if (buffers_[index(l.rank)].call < 0 || buffers_[index(l.rank)].channels_left == 0) begin_call(l.rank);
    if (!may_begin(l)) return false;
    l.state = State::running;
    if (plans_[index(l.rank)].actions.empty()) next_action(l);
    return true;
  }
  if (l.state == State::leaving) return leave(l);
  const Action& a = plans_[index(l.rank)].actions[l.action];
  if (a.verb == Verb::copy || a.verb == Verb::reduce) {
    if (l.operand == 0 && !may_change(l, a)) return false;
    if (!pass(l, a)) return verdict_.outcome == Outcome::right;
  } else {
    if (a.peer >= ranks_ || a.peer == l.rank) return fail(Outcome::broken, "no such peer");
    if (!act(l, a)) return false;
  }
  next_action(l);
  return true;
}

void ReferenceExecutor::next_action(Channel& l) {
  const Plan& plan = plans_[index(l.rank)];
  if (++l.action < plan.actions.size()) return;
  l.action = 0;
  l.tile += trial_.channels;
  if (l.tile < trial_.tiles && !plan.actions.empty()) return;
  l.state = State::leaving;
  leave(l);
}

/// The user gets the buffers back when nobody is to read them any more.
bool ReferenceExecutor::leave(Channel& l) {
  if (waits_for_readers(l, nullptr)) return false;
  l.state = State::finished;
  if (--buffers_[index(l.rank)].channels_left == 0) end_call(l.rank);
  return true;
}

/// All but passes. False: blocked or broken.
bool ReferenceExecutor::act(Channel& l, const Action& a) {
  Link& out = link(l, l.rank, a.peer);
  Link& in = link(l, a.peer, l.rank);
  switch (a.verb) {
    case Verb::acquire:
      if (std::size_t{a.items} * block_words_max > slot_words_)
        return fail(Outcome::broken, "more items than a slot holds");
      if (out.committed - out.released >= ring_) return false;
      out.filling = true;
      return true;
    case Verb::commit:
      if (!out.filling) return fail(Outcome::broken, "commit of nothing");
      ++out.committed;
      out.filling = false;
      return true;
    case Verb::peek:
      if (in.released >= in.committed) return false;
      in.reading = true;
      return true;
    case Verb::release:
      if (!in.reading) return fail(Outcome::broken, "release of nothing");
      ++in.released;
      in.reading = false;
      return true;
    case Verb::settle: return trial_.slots > 0 || out.released == out.committed;
    case Verb::signal: return ++flag(l.rank, a.peer, true), true;
    case Verb::wait:
      if (flag(a.peer, l.rank, true) <= flag(a.peer, l.rank, false)) return false;
      return ++flag(a.peer, l.rank, false), true;
    case Verb::wait_descriptor:
      return !lines_[index(buffers_[index(l.rank)].call) * index(ranks_) + index(a.peer)].empty();
    default: return fail(Outcome::broken, "no such verb");
  }
}

/// Reads or writes one operand. True when it was the last.
bool ReferenceExecutor::pass(Channel& l, const Action& a) {
  const Plan& plan = plans_[index(l.rank)];
  const int sources = a.sources;
  if (a.first + index(sources) + a.destinations > plan.places.size() || sources < 1 || a.part >= index(parts_))
    return fail(Outcome::broken, "no such operands");
  const int words = block_words(static_cast<int>(a.part));
  const Place& place = plan.places[a.first + index(l.operand)];
  const bool written = l.operand >= sources;
  const bool halves = a.verb == Verb::reduce && averages(plan.collective);
  const Operand o = operand(l, a, place, written);
  if (!o.at) return fail(Outcome::broken, "no such place");
  if (written) {
    if (words > o.words) return fail(Outcome::broken, "writes beyond its block");
    if (!offer(l, a, index(l.operand - sources))) std::copy_n(l.held, words, o.at);
  } else {
    for (int word = 0; word < words; ++word) {
      Word x = word < o.words ? o.at[word] : poison;
      if (place.contribution && arithmetic_.reduces()) x = arithmetic_.scaled(x, o.owner);
      if (halves) x = Arithmetic::doubled(x, place.halvings);
      l.held[word] = l.operand == 0 ? x : arithmetic_.combined(l.held[word], x);
      if (l.operand + 1 < sources) continue;
      if (sources > 1) l.held[word] = arithmetic_.rounded(l.held[word]);
      if (a.last)
        l.held[word] = arithmetic_.finished(l.held[word], static_cast<int>(a.halvings));
      else if (halves)
        l.held[word] = Arithmetic::halved(l.held[word], static_cast<int>(a.halvings));
    }
  }
  if (++l.operand < sources + a.destinations) return false;
  l.operand = 0;
  return true;
}

ReferenceExecutor::Operand ReferenceExecutor::operand(Channel& l, const Action& a, const Place& p, bool written) {
  if (p.where == Where::slot) return item(l, p, written);
  const bool remote = p.where >= Where::peer_input;
  const Rank owner = remote ? p.peer : l.rank;
  if (owner >= ranks_ || (remote && owner == l.rank)) return {};
  Buffers& b = buffers_[index(owner)];
  const int words = block_words(static_cast<int>(p.block) % parts_);
  const std::size_t tile = index(l.tile) * block_words_max;
  const auto at = [&](std::vector<Word>& memory, std::size_t first) {
    return &memory[(first + p.block) * index(trial_.tiles) * block_words_max + tile];
  };
  switch (p.where) {
    case Where::input:
    case Where::peer_input:
      if (p.block >= index(b.input_blocks) || written) return {};
      if (remote && access_ != Access::mapped && access_ != Access::cma) return {};
      return {at(b.user, b.input), words, owner};
    case Where::output:
    case Where::peer_output:
      if (p.block >= index(b.output_blocks)) return {};
      if (remote && access_ != Access::mapped && (access_ != Access::cma || written)) return {};
      return {at(b.user, b.output), words, owner};
    case Where::scratch:
      if (p.block >= index(plans_[index(l.rank)].scratch_groups * parts_)) return {};
      return {at(b.scratch, 0), words, owner};
    case Where::peer_payload: {
      std::vector<Word>& line = lines_[index(buffers_[index(l.rank)].call) * index(ranks_) + index(owner)];
      if (p.block >= index(b.input_blocks) || written || access_ != Access::in_line || a.part >= index(parts_))
        return {};
      return {line.empty() ? nothing_ : &line[p.block * block_words_max], words, owner};
    }
    case Where::slot: break;
  }
  return {};
}

ReferenceExecutor::Operand ReferenceExecutor::item(Channel& l, const Place& p, bool written) {
  if (p.peer >= ranks_ || p.peer == l.rank || access_ != Access::slots) return {};
  Link& k = written ? link(l, l.rank, p.peer) : link(l, p.peer, l.rank);
  const bool open = written ? k.filling : k.reading;
  if (!open || (std::size_t{p.block} + 1) * block_words_max > slot_words_) return {};
  const std::uint64_t message = (written ? k.committed : k.released) % ring_;
  if (const Operand& there = k.offered[message * slot_words_ / block_words_max + p.block]; !written && there.at)
    return there;
  return {&k.slots[message * slot_words_ + p.block * block_words_max], block_words_max, p.peer};
}

}  // namespace tutti::testing
