// Which blocks a sender has offered that its peer may still read: they must not change unseen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "transport/fifo.h"

namespace tutti {

/// Offers of messages that the peer has not released, in order. The last message may be one that is still being filled;
/// of it, bits say which pieces of the slot hold offers.
class PendingOffers {
 public:
  bool empty() const { return blocks_.empty(); }
  bool overlap(std::span<const std::byte> memory) const {
    return std::ranges::any_of(blocks_, [&](const Block& one) { return tutti::overlap(one.memory, memory); });
  }

  bool hold(std::uint32_t piece) const { return (pieces_ & piece) != 0; }
  void add(std::uint64_t message, std::size_t at, std::span<const std::byte> memory, std::uint32_t piece) {
    pieces_ |= piece;
    blocks_.push_back({.message = message, .at = at, .memory = memory});
  }
  /// The message is being filled; what was offered for `at`, if anything, is not.
  void take_back(std::uint64_t message, std::size_t at, std::uint32_t piece) {
    const auto known =
        std::ranges::find_if(blocks_, [&](const Block& one) { return one.message == message && one.at == at; });
    if (known == blocks_.end()) return;
    pieces_ &= ~piece;
    blocks_.erase(known);
  }
  /// The message is filled: its pieces.
  std::uint32_t commit() { return std::exchange(pieces_, 0); }

  /// All messages before this one have been released.
  void drop_before(std::uint64_t message) {
    std::erase_if(blocks_, [&](const Block& one) { return one.message < message; });
  }
  /// The oldest message with offers. Requires that there is one.
  std::uint64_t oldest() const { return blocks_.front().message; }
  /// Puts the blocks of that message into its slot, where they would have been without the offer.
  void fill_oldest(std::byte* slot) {
    const auto end =
        std::ranges::find_if(blocks_, [first = oldest()](const Block& one) { return one.message != first; });
    for (auto one = blocks_.begin(); one != end; ++one)
      std::memcpy(slot + one->at, one->memory.data(), one->memory.size());
    blocks_.erase(blocks_.begin(), end);
  }

 private:
  struct Block {
    std::uint64_t message = 0;
    std::size_t at = 0;
    std::span<const std::byte> memory;
  };

  std::vector<Block> blocks_;
  std::uint32_t pieces_ = 0;
};

}  // namespace tutti
