#include "analysis/proof/check_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/proof/check_operands.h"

namespace tutti::proof {

Messages::Messages(int ranks, int slots, int channels, int items_max) : ranks_(ranks), rendezvous_(slots == 0) {
  for (int channel = 0; channel < channels; ++channel) slots_.emplace_back(ranks, slots, items_max);
}

Result<bool> Messages::acquire(Channel& l, const Action& a, Clocks& clocks) {
  Slots& slots = of(l);
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (link.filling()) return l.wrong(fmt::format("a message to rank {} is open already", a.peer));
  if (!slots.has_free_slot(link)) return false;

  Message& message = slots.message(link, link.acquired);
  if (message.freed != Clocks::none) clocks.join(l.now, message.freed);
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

Result<void> Messages::commit(Channel& l, const Action& a, Clocks& clocks) {
  Slots& slots = of(l);
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (!link.filling()) return l.wrong(fmt::format("commit without an open message to rank {}", a.peer));

  Message& message = slots.message(link, link.committed);
  if (message.filled == Clocks::none) message.filled = clocks.take();
  clocks.copy(message.filled, l.now);
  clocks.tick(l.now, l.rank);
  ++link.committed;
  --l.open;
  return {};
}

Result<bool> Messages::peek(Channel& l, const Action& a, Clocks& clocks) {
  Slots& slots = of(l);
  Slots::Link& link = slots.link(a.peer, l.rank);
  if (link.reading()) return l.wrong(fmt::format("a message from rank {} is open already", a.peer));
  if (link.peeked == link.committed) return false;

  const Message& message = slots.message(link, link.peeked);
  if (message.call != l.call || message.tile != l.tile)
    return l.wrong(fmt::format("gets rank {}'s message of call {}, tile {}", a.peer, message.call, message.tile));
  if (message.items != a.items)
    return l.wrong(fmt::format("expects {} items from rank {}, which sends {}", a.items, a.peer, message.items));
  clocks.join(l.now, message.filled);
  ++link.peeked;
  ++l.open;
  return true;
}

Result<void> Messages::release(Channel& l, const Action& a, Clocks& clocks) {
  Slots& slots = of(l);
  Slots::Link& link = slots.link(a.peer, l.rank);
  if (!link.reading()) return l.wrong(fmt::format("release without an open message from rank {}", a.peer));

  Message& message = slots.message(link, link.released);
  if (message.freed == Clocks::none) message.freed = clocks.take();
  clocks.copy(message.freed, l.now);
  clocks.tick(l.now, l.rank);
  ++link.released;
  --l.open;
  return {};
}

/// With slots, settle is unnecessary, and must not be relied on: it orders nothing there.
bool Messages::settle(Channel& l, const Action& a, Clocks& clocks) {
  if (!rendezvous_) return true;
  Slots& slots = of(l);
  Slots::Link& link = slots.link(l.rank, a.peer);
  if (link.released != link.committed) return false;
  if (link.committed > 0) clocks.join(l.now, slots.message(link, link.committed - 1).freed);
  link.known_released = link.committed;
  return true;
}

Result<Slots::Item*> Messages::item(const Channel& l, const Action& a, const Place& p, bool written) {
  Slots& slots = of(l);
  Slots::Link& link = written ? slots.link(l.rank, p.peer) : slots.link(p.peer, l.rank);
  if (written ? !link.filling() : !link.reading()) return l.wrong(describe(p, written) + ": no message is open");

  const std::uint32_t number = written ? link.committed : link.released;
  if (p.block >= slots.message(link, number).items) return l.wrong(describe(p, written) + ": beyond its items");
  Slots::Item& item = slots.item(link, number, p.block);
  if (written) item.part = a.part;
  if (item.part != a.part) return l.wrong(describe(p, written) + ": of another part");
  return &item;
}

bool Messages::released(const Channel& l, Rank peer, std::uint32_t number, Clocks& clocks) {
  Slots& slots = of(l);
  Slots::Link& link = slots.link(l.rank, peer);
  if (link.released <= number) return false;
  clocks.join(l.now, slots.message(link, link.released - 1).freed);
  return true;
}

/// With 0 slots, messages lie in the sender's memory, which is free for other use when its call is over.
Result<void> Messages::all_settled(const Channel& l) {
  for (Rank peer = 0; rendezvous_ && peer < ranks_; ++peer) {
    const Slots::Link& link = of(l).link(l.rank, peer);
    if (link.committed > link.known_released)
      return l.wrong(fmt::format("leaves the call while rank {} may still take its message", peer));
  }
  return {};
}

Result<void> Messages::all_taken(const Channel& l, Rank peer) {
  if (slots_.empty()) return {};
  const Slots::Link& link = of(l).link(l.rank, peer);
  if (link.committed != link.released) return l.wrong(fmt::format("rank {} never takes its message", peer));
  return {};
}

}  // namespace tutti::proof
