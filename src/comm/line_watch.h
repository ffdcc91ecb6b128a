// What a call that goes by call lines finds by looking at its peers' while it waits.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace tutti {

/// `error` with what every rank called, where it is a mismatch that lines have shown.
Error with_calls(const CallLines& lines, Error error);

/// Compares all lines that have come since, and finds ranks that left before call `sequence`, which is not `over` here;
/// `where` says where it is. Errors: invalid_usage (a mismatch), remote (a rank left).
Result<void> look_at_lines(Communicator& communicator, std::uint64_t sequence, bool over,
                           const std::function<std::string()>& where);

}  // namespace tutti
