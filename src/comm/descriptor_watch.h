// Checks of the peers' call descriptors, made while a rank waits in a call and before it leaves.
#pragma once

#include <cstdint>

#include "call/mismatch.h"
#include "comm/communicator.h"

namespace tutti {

/// Returns `error`; if it is a mismatch that call descriptors have shown, with the calls of all ranks. `by`: the rank
/// that reports it, and its call.
Error with_calls(const CallDescriptors& descriptors, Reporter by, Error error);

/// Compares all new descriptors and, unless call `sequence` is `over` on this rank, looks for ranks that left before
/// they made it, or failed or ended before they had completed it. Errors: invalid_usage (a mismatch, or a rank that
/// left), remote.
Result<void> check_descriptors(Communicator& communicator, std::uint64_t sequence, bool over);

/// For a rank that leaves: checks that all peers have made the same calls, as far as can be known soon. Waits at most
/// half a second for peers that have not made this rank's last call yet. Errors: invalid_usage (a mismatch, or a peer
/// in a call that this rank never makes); the loss of a peer that was noted, as what this rank has not done then is a
/// consequence, which the others are to know.
Result<void> check_before_leaving(Communicator& communicator);

}  // namespace tutti
