// Explains in text how a communicator would carry out a call, and why.
#pragma once

#include <cstddef>
#include <string>

#include "comm/communicator.h"

namespace tutti {

/// Explains a call whose groups have `group_bytes`, with root 0: once for each access that the call may use, depending
/// on where the ranks' buffers lie.
std::string explain_call(Communicator& communicator, Collective collective, std::size_t group_bytes);

/// Accepts "allreduce", "all_reduce" and "AllReduce". Errors: invalid_argument (lists the known names).
Result<Collective> collective_named(const char* word);

}  // namespace tutti
