// Reads from a rank's shared area whether and why it has failed or left.
#pragma once

#include <optional>

#include "comm/communicator.h"

namespace tutti {

/// The error of a rank that failed, aborted or is lost. Empty for a rank that is open or has closed: a rank that has
/// closed has finished all its calls, and a rank that still waits for it finds this out by poll_peers.
std::optional<Error> failure_of(const Communicator& communicator, Rank rank);

/// The failure of any rank other than this one.
std::optional<Error> failure_of_any(const Communicator& communicator);

/// Whether `rank` has closed the communicator.
bool has_left(const Communicator& communicator, Rank rank);
/// The error of `call` (a description), which waits for a rank that has left.
Error left_before(const Communicator& communicator, Rank rank, const std::string& call);

}  // namespace tutti
