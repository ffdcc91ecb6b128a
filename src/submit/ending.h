// How a communicator ends: what has been queued is waited for and compared, then this rank leaves.
#pragma once

#include "comm/communicator.h"

namespace tutti {

/// Waits for the queued calls and compares them with the peers' calls and messages. Errors: a mismatch that no call has
/// returned to the user yet.
Result<void> finish_calls(Communicator& communicator);

/// Takes the communicator from those that the process serves; nobody makes calls any more. Waits at most a second for
/// those under way. The communicator is freed when its last user releases it.
void leave(Communicator& communicator);

}  // namespace tutti
