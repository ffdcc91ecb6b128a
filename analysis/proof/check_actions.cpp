// The effect of one action on clocks, messages and blocks.
#include <fmt/format.h>

#include "analysis/proof/check_machine.h"
#include "analysis/proof/check_operands.h"

namespace tutti::proof {
namespace {

/// How an average keeps what the pass has read, and what it makes.
Result<void> halvings_right(const Channel& l, const Action& a, std::span<const Terms::Id> operands, Terms::Id result) {
  if (a.verb != Verb::reduce || !l.stage->may_average()) return {};
  const Terms& terms = l.stage->terms;
  const auto sources = l.plan().sources(a);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (const int inputs = terms.inputs(operands[i]); sources[i].halvings != halvings_of(inputs))
      return l.wrong(fmt::format("{}: is halved {} times, not {}, for {} inputs", describe(sources[i], false),
                                 halvings_of(inputs), int{sources[i].halvings}, inputs));
  if (const int inputs = terms.inputs(result); a.halvings != static_cast<std::uint32_t>(halvings_of(inputs)))
    return l.wrong(fmt::format("its result must be halved {} times, not {}, for {} inputs", halvings_of(inputs),
                               a.halvings, inputs));
  return {};
}

/// A contribution is scaled where it is first read; a finished block cannot be an operand.
Result<Terms::Id> as_operand(const Channel& l, const Action& a, const Place& p, Terms::Id term) {
  if (term == Terms::undefined) return l.wrong(describe(p, false) + ": read, but nothing was written");
  if (!l.stage->adds()) return term;
  const Terms& terms = l.stage->terms;
  if (p.contribution) {
    if (!terms.is_raw(term)) return l.wrong(describe(p, false) + ": marked as a contribution, holds another value");
    return terms.scaled(term);
  }
  if (a.verb != Verb::reduce) return term;
  if (terms.is_raw(term)) return l.wrong(describe(p, false) + ": a contribution, reduced without its mark");
  if (terms.is_finished(term)) return l.wrong(describe(p, false) + ": reduced again after its last reduction");
  return term;
}

}  // namespace

Result<bool> Machine::step(Channel& l, const Action& a) {
  switch (a.verb) {
    case Verb::copy:
    case Verb::reduce: return pass(l, a);
    case Verb::acquire: return messages_.acquire(l, a, clocks_);
    case Verb::commit:
      TUTTI_TRY(messages_.commit(l, a, clocks_));
      channels_.wake(a.peer, l.channel);
      return true;
    case Verb::peek: return messages_.peek(l, a, clocks_);
    case Verb::release:
      TUTTI_TRY(messages_.release(l, a, clocks_));
      channels_.wake(a.peer, l.channel);
      return true;
    case Verb::settle: return messages_.settle(l, a, clocks_);
    case Verb::signal:
      flags_[0].raise(l.rank, a.peer, clocks_, l.now);
      clocks_.tick(l.now, l.rank);
      channels_.wake(a.peer, l.channel);
      return true;
    case Verb::wait: return flags_[0].take(a.peer, l.rank, clocks_, l.now);
    case Verb::wait_descriptor: return entries_.open(l, a.peer, clocks_);
  }
  return l.wrong("no such action");
}

Result<bool> Machine::pass(Channel& l, const Action& a) {
  if (!offers_.may_change(l, a, messages_, clocks_)) return false;
  Terms& terms = l.stage->terms;
  operands_.clear();
  for (const Place& p : l.plan().sources(a)) operands_.push_back(TUTTI_TRY(read(l, a, p)));
  Terms::Id result = terms.reduced(operands_);
  TUTTI_TRY(halvings_right(l, a, operands_, result));
  if (a.last) result = terms.finished(result);
  const Place& first = l.plan().sources(a)[0];
  for (const Place& p : l.plan().destinations(a)) {
    if (a.verb == Verb::copy && l.left_alone(first, p)) continue;
    TUTTI_TRY(write(l, a, p, result));
  }
  TUTTI_TRY(offers_.offer(l, a, messages_));
  return true;
}

Result<Terms::Id> Machine::read(Channel& l, const Action& a, const Place& p) {
  if (p.where == Where::peer_payload) {
    if (!entries_.has_opened(l, p.peer)) return l.wrong(describe(p, false) + ": not waited for");
    return l.stage->terms.contribution(p.peer, static_cast<int>(p.block));
  }
  Slots::Item* const item = p.where == Where::slot ? TUTTI_TRY(messages_.item(l, a, p, false)) : nullptr;
  if (Cell* const offered = item != nullptr ? item->offered : nullptr; offered != nullptr) {
    if (const auto with = note_read(*offered, clocks_, l.rank, l.now); with.found) return l.race(p, false, with);
    if (offered->term != item->offered_term)
      return l.wrong(describe(p, false) + ": its sender has changed the offered block");
  }
  Cell& from = item != nullptr ? item->cell : l.cell(p);
  if (const auto with = note_read(from, clocks_, l.rank, l.now); with.found) return l.race(p, false, with);
  return as_operand(l, a, p, from.term);
}

Result<void> Machine::write(Channel& l, const Action& a, const Place& p, Terms::Id term) {
  Cell& to = p.where == Where::slot ? TUTTI_TRY(messages_.item(l, a, p, true))->cell : l.cell(p);
  if (const auto with = note_write(to, clocks_, l.rank, l.now); with.found) return l.race(p, true, with);
  to.term = term;
  return {};
}

}  // namespace tutti::proof
