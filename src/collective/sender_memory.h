// How a receiver gets the data of a message: through slots, or out of the memory of a sender on its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/enumeration.h"
#include "base/host.h"
#include "comm/communicator.h"
#include "comm/peer_windows.h"

namespace tutti {

enum class Carry : std::uint32_t { slots, window, pull, last = pull };

/// What a message's header says of its data.
struct Carried {
  Unchecked<Carry> carry;
  BufferDescriptor buffer;
};

/// The best way to [data, data + bytes) for `receiver`, a rank of this host. Slots if there is no better one.
Carried best_carry(Communicator& communicator, Rank receiver, const std::byte* data, std::size_t bytes);

/// False: `why` has other reasons than that this rank may not read a peer's memory. True: no rank offers it any more.
bool note_refusal(Communicator& communicator, const Error& why);

/// A message's data as its receiver reads it.
class SenderMemory {
 public:
  SenderMemory() = default;  ///< nothing can be read
  /// `bytes` of data that `sender` does not carry through slots. Errors: those of PeerWindows::share; remote (the
  /// memory cannot be reached).
  static Result<SenderMemory> open(Communicator& communicator, PeerWindows& windows, Rank sender,
                                   const Carried& carried, std::size_t bytes);

  /// Copies what lies `at` bytes behind the start. Errors: remote.
  Result<void> copy(std::size_t at, std::span<std::byte> into) const;

 private:
  std::shared_ptr<const std::byte> source_;  // in process_, if there is one; mapped as long as this lives
  ForeignProcess process_ = {};
};

}  // namespace tutti
