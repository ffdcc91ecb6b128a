// Blocks of messages that stay in their sender's memory, where the receiver reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

}  // namespace tutti
