// Blocks of messages that stay in their sender's memory, where the receiver reads them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transport/call_descriptor.h"
#include "transport/fifo.h"

namespace tutti {

/// Written into the slot in place of the block.
struct Offer {
  BufferDescriptor memory;
  std::uint64_t at = 0;       ///< of the block in the message
  std::uint64_t bytes = 0;    ///< of the block
  std::uint32_t retired = 0;  ///< the sending process's count of freed segments
  std::uint32_t reserved = 0;
};

/// What two ranks of a host can read of each other's memory. Called by the thread that drives the communicator.
class OfferedMemory {
 public:
  virtual ~OfferedMemory() = default;
  /// A description of this rank's `memory` for `peer`; nothing if the peer cannot read it. `at` is not set.
  virtual std::optional<Offer> describe(int peer, std::span<const std::byte> memory) const = 0;
  /// Whether this rank may still read what `peer` offers. If not, the peer fills its slots.
  virtual bool reads(int /*peer*/) { return true; }
  /// Where this rank can read what `peer` has offered. The offer was copied from shared memory. Errors: remote, system.
  virtual Result<OfferedBlock> find(int peer, const Offer& offer) = 0;
};

/// Which blocks a sender has offered that its peer may still read: they must not change unseen. Offers of messages that
/// the peer has not released, in order. The last message may be one that is still being filled; of it, bits say which
/// pieces of the slot hold offers.
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
