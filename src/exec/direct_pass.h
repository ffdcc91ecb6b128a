// Passes of large blocks through fifos that support it: messages are sent from the call's buffers, received into them,
// and reduced while they still arrive.
#pragma once

#include <cstddef>

#include "base/error.h"

#include "exec/passes.h"

namespace tutti {

/// As Passes::advance, of passes that are direct(). False: not at its end, or a peer is yet to read what the pass is
/// about to write, or too little of a message has arrived.
Result<bool> pass_direct(const Passes& passes, Channel& channel, Cursor& cursor, const Action& action,
                         std::size_t& budget);

}  // namespace tutti
