// What a communicator would do with a call, and why, in words.
#pragma once

#include <cstddef>
#include <string>

#include "comm/communicator.h"

namespace tutti {

/// What explain says of a call whose groups have `group_bytes`, root 0: once for each way in which ranks may reach each
/// other in it, which depends on where their buffers lie.
std::string explain_call(Communicator& communicator, Collective collective, std::size_t group_bytes);

/// "allreduce", "all_reduce", "AllReduce". Errors: invalid_argument, naming those there are.
Result<Collective> collective_named(const char* word);

}  // namespace tutti
