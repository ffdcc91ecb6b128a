// Checks what users pass in, before anything moves.
#pragma once

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// Errors: invalid_argument, naming the argument and what is allowed: null pointers where bytes are needed, type,
/// operator or root out of range, a count whose bytes do not fit, send and receive buffers that overlap other than in
/// place.
Result<void> check_arguments(const Request& request, Rank rank, int ranks);
Result<void> check_arguments(const PeerRequest& request, std::size_t count, int ranks);

Result<DataType> data_type(int value);

}  // namespace tutti
