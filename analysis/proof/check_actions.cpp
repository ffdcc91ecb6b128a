// The effect of one action on clocks, messages and blocks.
#include <fmt/format.h>

#include "analysis/proof/check_machine.h"
#include "analysis/proof/check_operands.h"

namespace tutti::proof {

Result<bool> Machine::step(Channel& l, const Action& a) {
  switch (a.verb) {
    case Verb::copy:
    case Verb::reduce: return pass(l, a);
    case Verb::acquire: return acquire(l, a);
    case Verb::commit: return commit(l, a);
    case Verb::peek: return peek(l, a);
    case Verb::release: return release(l, a);
    case Verb::settle: return settle(l, a);
    case Verb::signal:
      flags_[0].raise(l.rank, a.peer, clocks_, l.now);
      publish(l);
      wake(a.peer, l.channel);
      return true;
    case Verb::wait: return flags_[0].take(a.peer, l.rank, clocks_, l.now);
    case Verb::wait_descriptor: return wait_descriptor(l, a);
  }
  return wrong(l, "no such action");
}

Result<bool> Machine::acquire(Channel& l, const Action& a) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (link.filling()) return wrong(l, fmt::format("a message to rank {} is open already", a.peer));
  if (!slots.has_free_slot(link)) return false;

  Message& message = slots.message(link, link.acquired);
  if (message.freed != Clocks::none) clocks_.join(l.now, message.freed);
  link.known_released = link.acquired - std::min(link.acquired, slots.slots() - 1);
  message.call = l.call;
  message.tile = l.tile;
  message.items = a.items;
  for (std::uint32_t i = 0; i < a.items; ++i) {
    Slots::Item& item = slots.item(link, link.acquired, i);
    item.cell.term = Terms::undefined;
    item.offered = nullptr;
  }
  ++link.acquired;
  ++l.open;
  return true;
}

Result<bool> Machine::commit(Channel& l, const Action& a) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (!link.filling()) return wrong(l, fmt::format("commit without an open message to rank {}", a.peer));

  Message& message = slots.message(link, link.committed);
  if (message.filled == Clocks::none) message.filled = clocks_.take();
  clocks_.copy(message.filled, l.now);
  publish(l);
  ++link.committed;
  --l.open;
  wake(a.peer, l.channel);
  return true;
}

Result<bool> Machine::peek(Channel& l, const Action& a) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(a.peer, l.rank);
  if (link.reading()) return wrong(l, fmt::format("a message from rank {} is open already", a.peer));
  if (link.peeked == link.committed) return false;

  const Message& message = slots.message(link, link.peeked);
  if (message.call != l.call || message.tile != l.tile)
    return wrong(l, fmt::format("gets rank {}'s message of call {}, tile {}", a.peer, message.call, message.tile));
  if (message.items != a.items)
    return wrong(l, fmt::format("expects {} items from rank {}, which sends {}", a.items, a.peer, message.items));
  clocks_.join(l.now, message.filled);
  ++link.peeked;
  ++l.open;
  return true;
}

Result<bool> Machine::release(Channel& l, const Action& a) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(a.peer, l.rank);
  if (!link.reading()) return wrong(l, fmt::format("release without an open message from rank {}", a.peer));

  Message& message = slots.message(link, link.released);
  if (message.freed == Clocks::none) message.freed = clocks_.take();
  clocks_.copy(message.freed, l.now);
  publish(l);
  ++link.released;
  --l.open;
  wake(a.peer, l.channel);
  return true;
}

/// With slots, settle is unnecessary, and must not be relied on: it orders nothing there.
Result<bool> Machine::settle(Channel& l, const Action& a) {
  if (!rendezvous_) return true;
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (link.released != link.committed) return false;
  if (link.committed > 0) clocks_.join(l.now, slots.message(link, link.committed - 1).freed);
  link.known_released = link.committed;
  return true;
}

Result<bool> Machine::wait_descriptor(Channel& l, const Action& a) {
  const Clocks::Row line = lines_[static_cast<std::size_t>(l.call) * ranks_ + a.peer];
  if (line == Clocks::none) return false;
  clocks_.join(l.now, line);
  opened_[static_cast<std::size_t>(l.rank) * ranks_ + a.peer] = l.call + 1;
  return true;
}

Result<bool> Machine::pass(Channel& l, const Action& a) {
  if (!may_change(l, a)) return false;
  Terms& terms = *stage(l).program.terms;
  operands_.clear();
  for (const Place& p : plan(l).sources(a)) {
    const auto term = TUTTI_TRY(read(l, a, p));
    operands_.push_back(term);
  }
  Terms::Id result = terms.reduced(operands_);
  TUTTI_TRY(halvings_right(l, a, result));
  if (a.last) result = terms.finished(result);
  const Place& first = plan(l).sources(a)[0];
  for (const Place& p : plan(l).destinations(a)) {
    if (a.verb == Verb::copy && left_alone(l, first, p)) continue;
    TUTTI_TRY(write(l, a, p, result));
  }
  TUTTI_TRY(offer_blocks(l, a));
  return true;
}

/// How an average keeps what the pass has read, and what it makes.
Result<void> Machine::halvings_right(const Channel& l, const Action& a, Terms::Id result) const {
  if (a.verb != Verb::reduce || !may_average(l)) return {};
  const Terms& terms = *stage(l).program.terms;
  const auto sources = plan(l).sources(a);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (const int inputs = terms.inputs(operands_[i]); sources[i].halvings != halvings_of(inputs))
      return wrong(l, fmt::format("{}: is halved {} times, not {}, for {} inputs", describe(sources[i], false),
                                  halvings_of(inputs), int{sources[i].halvings}, inputs));
  if (const int inputs = terms.inputs(result); a.halvings != static_cast<std::uint32_t>(halvings_of(inputs)))
    return wrong(l, fmt::format("its result must be halved {} times, not {}, for {} inputs", halvings_of(inputs),
                                a.halvings, inputs));
  return {};
}

/// In place, a copy may be of a block onto itself: nothing is stored then, unless reading scales the block.
bool Machine::left_alone(const Channel& l, const Place& source, const Place& destination) {
  const bool buffers = source.where < Where::slot && destination.where < Where::slot;
  const bool scales = source.contribution && adds(l);
  return buffers && !scales && &cell(l, source) == &cell(l, destination);
}

/// The cell of a block in a buffer; slots and call descriptors have their own.
Cell& Machine::cell(const Channel& l, const Place& p) {
  const int block = static_cast<int>(p.block);
  Memory& memory = stage(l).memory;
  switch (p.where) {
    case Where::input: return memory.at(l.rank, Buffer::input, block, l.tile);
    case Where::output: return memory.at(l.rank, Buffer::output, block, l.tile);
    case Where::peer_input: return memory.at(p.peer, Buffer::input, block, l.tile);
    case Where::peer_output: return memory.at(p.peer, Buffer::output, block, l.tile);
    case Where::scratch:
    case Where::slot:
    case Where::peer_payload: break;
  }
  return memory.at(l.rank, Buffer::scratch, block, l.tile);
}

Result<Slots::Item*> Machine::item(Channel& l, const Action& a, const Place& p, bool written) {
  Slots& slots = slots_[static_cast<std::size_t>(l.channel)];
  Slots::Link& link = written ? slots.link(l.rank, p.peer) : slots.link(p.peer, l.rank);
  if (written ? !link.filling() : !link.reading()) return wrong(l, describe(p, written) + ": no message is open");

  const std::uint32_t number = written ? link.committed : link.released;
  if (p.block >= slots.message(link, number).items) return wrong(l, describe(p, written) + ": beyond its items");
  Slots::Item& item = slots.item(link, number, p.block);
  if (written) item.part = a.part;
  if (item.part != a.part) return wrong(l, describe(p, written) + ": of another part");
  return &item;
}

Result<Terms::Id> Machine::read(Channel& l, const Action& a, const Place& p) {
  if (p.where == Where::peer_payload) {
    if (opened_[static_cast<std::size_t>(l.rank) * ranks_ + p.peer] != l.call + 1)
      return wrong(l, describe(p, false) + ": not waited for");
    return stage(l).program.terms->contribution(p.peer, static_cast<int>(p.block));
  }
  Cell* from = nullptr;
  if (p.where == Where::slot) {
    const auto found = item(l, a, p, false);
    if (!found) return Error(found.error());
    from = &(*found)->cell;
    if (Cell* const offered = (*found)->offered; offered != nullptr) {
      if (const auto with = note_read(*offered, clocks_, l.rank, l.now); with.found) return race(l, p, false, with);
      if (offered->term != (*found)->offered_term)
        return wrong(l, describe(p, false) + ": its sender has changed the offered block");
    }
  } else {
    from = &cell(l, p);
  }
  if (const auto with = note_read(*from, clocks_, l.rank, l.now); with.found) return race(l, p, false, with);
  return as_operand(l, a, p, from->term);
}

/// A contribution is scaled where it is first read; a finished block cannot be an operand.
Result<Terms::Id> Machine::as_operand(Channel& l, const Action& a, const Place& p, Terms::Id term) {
  if (term == Terms::undefined) return wrong(l, describe(p, false) + ": read, but nothing was written");
  if (!adds(l)) return term;
  const Terms& terms = *stage(l).program.terms;
  if (p.contribution) {
    if (!terms.is_raw(term)) return wrong(l, describe(p, false) + ": marked as a contribution, holds another value");
    return terms.scaled(term);
  }
  if (a.verb != Verb::reduce) return term;
  if (terms.is_raw(term)) return wrong(l, describe(p, false) + ": a contribution, reduced without its mark");
  if (terms.is_finished(term)) return wrong(l, describe(p, false) + ": reduced again after its last reduction");
  return term;
}

Result<void> Machine::write(Channel& l, const Action& a, const Place& p, Terms::Id term) {
  Cell* to = nullptr;
  if (p.where == Where::slot) {
    const auto found = TUTTI_TRY(item(l, a, p, true));
    to = &found->cell;
  } else {
    to = &cell(l, p);
  }
  if (const auto with = note_write(*to, clocks_, l.rank, l.now); with.found) return race(l, p, true, with);
  to->term = term;
  return {};
}

}  // namespace tutti::proof
