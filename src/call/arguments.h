// Checks the arguments that users pass, before any data moves.
#pragma once

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// Errors: invalid_argument, which names the argument and the allowed values: a null pointer for a buffer with data; a
/// type, operator or root out of range; a count whose bytes exceed memory; send and receive buffers that overlap other
/// than in place.
Result<void> check_arguments(const Request& request, Rank rank, int ranks);
Result<void> check_arguments(const PeerRequest& request, std::size_t count, int ranks);

Result<DataType> data_type(int value);

}  // namespace tutti
