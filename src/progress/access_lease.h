// Controls access to the buffers of ranks in this process. After a failure, a buffer's pages can be moved away from
// other processes, however late they run, but not from threads of this process: the owner must wait until they stop
// using the buffer.
#pragma once

#include "comm/communicator.h"

namespace tutti {

/// Held by a call while it may access peers' buffers by address.
class AccessLease {
 public:
  /// Whoever begins looks afterwards whether peers have failed, whose buffers must not be accessed any more.
  explicit AccessLease(Communicator& communicator);
  ~AccessLease();
  AccessLease(const AccessLease&) = delete;
  AccessLease& operator=(const AccessLease&) = delete;

 private:
  Communicator& communicator_;
};

/// To be called after a failure of `communicator`, before its user learns of it: returns once no peer accesses this
/// rank's buffers any more. First waits, at most a second, for threads of this process, which learn of the failure
/// soon. Then moves the pages of `leased` (nullptr: none; see Operation) away from other processes; no thread of this
/// process may write to these pages during the move. Must not be called while this thread holds an AccessLease: a peer
/// may be waiting for its end in the same way.
void take_back_buffers(Communicator& communicator, const void* leased);

}  // namespace tutti
