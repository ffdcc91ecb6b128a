// The links between ranks: slots, flags and call descriptors, each with the clocks that it carries from one rank to
// another.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/proof/check_clock.h"

namespace tutti::proof {

/// Flags between all ranks of one channel: each raise is taken once, in order.
class Flags {
 public:
  explicit Flags(int ranks) : ranks_(static_cast<std::size_t>(ranks)), queues_(ranks_ * ranks_) {}

  void raise(Rank from, Rank to, Clocks& clocks, Clocks::Row now);
  /// False: not raised yet.
  bool take(Rank from, Rank to, Clocks& clocks, Clocks::Row now);
  bool pending(Rank from, Rank to) const { return queues_[index(from, to)].head != Clocks::none; }

 private:
  struct Queue {
    Clocks::Row head = Clocks::none;
    Clocks::Row tail = Clocks::none;
  };
  std::size_t index(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  }
  std::size_t ranks_;
  std::vector<Queue> queues_;
};

/// One message in a slot.
struct Message {
  int call = 0;
  int tile = 0;
  std::uint32_t items = 0;
  Clocks::Row filled = Clocks::none;
  Clocks::Row freed = Clocks::none;
};

/// The slots of one channel, from every rank to every other. With 0 slots there is one, in the sender's memory.
class Slots {
 public:
  Slots(int ranks, int slots, int items_max);

  /// One direction of messages; all counters count messages.
  struct Link {
    std::uint32_t acquired = 0;  ///< one more than committed while a message is open to be filled
    std::uint32_t committed = 0;
    std::uint32_t peeked = 0;  ///< one more than released while a message is open to be read
    std::uint32_t released = 0;
    std::uint32_t known_released = 0;    ///< as far as the sender knows
    std::uint32_t first = Clocks::none;  // index of the link's first message; none until used
    bool filling() const { return acquired != committed; }
    bool reading() const { return peeked != released; }
  };
  struct Item {
    Cell cell;
    std::uint32_t part = 0;
    Cell* offered = nullptr;         ///< where the block is read instead, in its sender's buffer
    std::uint32_t offered_term = 0;  ///< content of that buffer when it was offered
  };

  Link& link(Rank from, Rank to) {
    return links_[static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to)];
  }
  bool has_free_slot(const Link& link) const { return link.committed - link.released < slots_; }
  /// The message with this number, which must be one of the last `slots`.
  Message& message(Link& link, std::uint32_t number);
  Item& item(Link& link, std::uint32_t number, std::uint32_t item) {
    return items_[(std::size_t{link.first} + number % slots_) * items_max_ + item];
  }
  std::uint32_t slots() const { return slots_; }

 private:
  std::size_t ranks_;
  std::uint32_t slots_;
  std::uint32_t items_max_;
  std::vector<Link> links_;
  std::vector<Message> messages_;  // the slots of a link are adjacent
  std::vector<Item> items_;        // items_max of each message
};

}  // namespace tutti::proof
