// The messages of one end that are filled, wait, or are under way: where the bytes of each lie.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "transport/fifo.h"
#include "transport/verbs/link_queues.h"

namespace tutti::verbs {

/// Each message has a slot in memory that the device reads; parts of it may lie in memory that the caller owns instead.
class SendSlots {
 public:
  struct Offer {
    std::size_t at = 0;
    std::span<const std::byte> memory;
    std::uint32_t key = 0;
  };
  struct Message {
    std::size_t bytes = 0;
    LinkQueues::Marks marks{};                                  // once passed, the device has read it
    std::vector<Offer> offers;                                  // in order
    std::array<std::uint32_t, QueuePair::pieces_max> header{};  // of a write whose last message this is
  };

  /// `memory`: `count` slots, for which the device has `key`.
  SendSlots(std::byte* memory, std::uint32_t key, std::size_t count, std::size_t slot_bytes)
      : memory_(memory), key_(key), slot_bytes_(slot_bytes), messages_(count) {}

  std::size_t count() const { return messages_.size(); }
  Message& operator[](std::uint64_t number) { return messages_[number % count()]; }
  const Message& operator[](std::uint64_t number) const { return messages_[number % count()]; }
  std::span<std::byte> slot(std::uint64_t number) const {
    return {memory_ + number % count() * slot_bytes_, slot_bytes_};
  }

  void offer(std::uint64_t number, const Offer& offer) {
    auto& offers = (*this)[number].offers;
    offers.insert(std::ranges::find_if(offers, [&](const Offer& other) { return other.at > offer.at; }), offer);
  }
  bool has_offers_in(std::uint64_t number, std::span<const std::byte> memory) const {
    return std::ranges::any_of((*this)[number].offers,
                               [&](const Offer& offer) { return overlap(offer.memory, memory); });
  }
  /// Copies what is offered of `memory` into the slot, so that it may change.
  void copy_offers_in(std::uint64_t number, std::span<const std::byte> memory) {
    std::erase_if((*this)[number].offers, [&](const Offer& offer) {
      if (!overlap(offer.memory, memory)) return false;
      std::ranges::copy(offer.memory, slot(number).data() + offer.at);
      return true;
    });
  }

  /// The memory of bytes [from, to) of a message: slot and offers in turn. Returns the number of pieces.
  std::uint32_t gather(std::uint64_t number, std::size_t from, std::size_t to, std::span<Sge> pieces) const {
    std::uint32_t count = 0;
    const auto add = [&](const std::byte* memory, std::size_t bytes, std::uint32_t key) {
      if (bytes > 0)
        pieces[count++] = {
            .addr = reinterpret_cast<std::uint64_t>(memory), .length = static_cast<std::uint32_t>(bytes), .lkey = key};
    };
    const auto fill = [&](std::size_t end) {
      if (from < end) add(slot(number).data() + from, end - from, key_);
      from = std::max(from, end);
    };
    for (const Offer& offer : (*this)[number].offers) {
      const std::size_t end = offer.at + offer.memory.size();
      if (end <= from || offer.at >= to) continue;
      fill(std::max(from, offer.at));
      add(offer.memory.data() + (from - offer.at), std::min(end, to) - from, offer.key);
      from = std::min(end, to);
    }
    fill(to);
    return count;
  }

 private:
  std::byte* memory_;
  std::uint32_t key_;
  std::size_t slot_bytes_;
  std::vector<Message> messages_;
};

}  // namespace tutti::verbs
