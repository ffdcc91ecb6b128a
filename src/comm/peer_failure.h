// What a rank says of its own failure in its shared area.
#pragma once

#include <optional>

#include "comm/communicator.h"

namespace tutti {

/// Why `rank` is of no use any more: it failed or aborted. Nothing for one that is open, or has closed: that one has
/// finished all it was asked for, and whoever still waits for it finds so by looking around.
std::optional<Error> failure_of(const Communicator& communicator, Rank rank);

/// That of any rank but this one.
std::optional<Error> failure_of_any(const Communicator& communicator);

/// Whether `rank` has closed the communicator.
bool has_left(const Communicator& communicator, Rank rank);
/// What becomes of `call` (in words), which waits for a rank that has left.
Error left_before(const Communicator& communicator, Rank rank, const std::string& call);

}  // namespace tutti
