// For a rank that leaves: have all messages found their receive?
#pragma once

#include "comm/communicator.h"

namespace tutti {

/// A short message is sent once it lies in a slot, whether or not its receiver ever asks for it. So a message that is
/// never received shows when one of the two leaves. A message with a tag may have been read all the same, and be kept.
/// For the thread that has the communicator, with nothing under way but messages with tags.
/// Errors: invalid_usage (names the ranks, and where it is known the message); remote, as the connections give them.
Result<void> check_all_received(Communicator& communicator);

}  // namespace tutti
