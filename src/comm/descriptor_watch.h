// What a rank finds by looking at its peers' call descriptors, while it waits in a call and before it leaves.
#pragma once

#include <cstdint>

#include "call/mismatch.h"
#include "comm/communicator.h"

namespace tutti {

/// `error` with what every rank called, where it is a mismatch that lines have shown. `by`: who reports it, in which
/// call.
Error with_calls(const CallDescriptors& lines, Reporter by, Error error);

/// Compares all lines that have come since, and finds ranks that left before call `sequence`, which is not `over` here.
/// Errors: invalid_usage (a mismatch, or a rank that left), remote.
Result<void> look_at_descriptors(Communicator& communicator, std::uint64_t sequence, bool over);

/// For a rank that leaves: compares its calls with those of all others, and waits at most `limit_ns` for ranks that
/// have not come to its last call yet. Errors: invalid_usage; also for a peer that is in a call that this rank never
/// makes.
Result<void> look_before_leaving(Communicator& communicator, std::int64_t limit_ns);

}  // namespace tutti
