// The links between ranks: slots and flags.
#include "analysis/proof/check_links.h"

#include <algorithm>

namespace tutti::proof {

void Flags::raise(Rank from, Rank to, Clocks& clocks, Clocks::Row now) {
  const Clocks::Row row = clocks.take();
  clocks.copy(row, now);
  clocks.next(row) = Clocks::none;
  Queue& queue = queues_[index(from, to)];
  if (queue.head == Clocks::none)
    queue.head = row;
  else
    clocks.next(queue.tail) = row;
  queue.tail = row;
}

bool Flags::take(Rank from, Rank to, Clocks& clocks, Clocks::Row now) {
  Queue& queue = queues_[index(from, to)];
  if (queue.head == Clocks::none) return false;
  const Clocks::Row row = queue.head;
  queue.head = clocks.next(row);
  clocks.join(now, row);
  clocks.give(row);
  return true;
}

Slots::Slots(int ranks, int slots, int items_max)
    : ranks_(static_cast<std::size_t>(ranks)),
      slots_(static_cast<std::uint32_t>(std::max(slots, 1))),
      items_max_(static_cast<std::uint32_t>(std::max(items_max, 0))),
      links_(ranks_ * ranks_) {}

Message& Slots::message(Link& link, std::uint32_t number) {
  if (link.first == Clocks::none) {
    link.first = static_cast<std::uint32_t>(messages_.size());
    messages_.resize(messages_.size() + slots_);
    items_.resize(messages_.size() * items_max_);
  }
  return messages_[link.first + number % slots_];
}

}  // namespace tutti::proof
