// When the memory of ranks that are threads of this process may be touched. Pages can be moved away from under another
// process, however late it wakes, but not from under a thread: one has to wait until it has let go.
#pragma once

#include <utility>

#include "comm/communicator.h"

namespace tutti {

/// Held by a call as long as it may read or write buffers that peers gave it by address.
class AccessLease {
 public:
  /// Errors: the failure of a peer; its buffers are its caller's again.
  static Result<AccessLease> begin(Communicator& communicator);

  AccessLease(AccessLease&& other) noexcept : communicator_(std::exchange(other.communicator_, nullptr)) {}
  AccessLease& operator=(AccessLease&&) = delete;
  ~AccessLease();

 private:
  explicit AccessLease(Communicator* communicator) : communicator_(communicator) {}
  Communicator* communicator_;
};

/// After a failure of `communicator`, before its user hears of it: returns once nobody touches this rank's buffers any
/// more. Threads of this process hear of the failure soon, and are waited for, at most a second. Only then the pages of
/// `leased` (or nullptr: none; see Operation) are moved away from under other processes: nobody here must write to them
/// meanwhile. Not while this thread itself has a AccessLease: a peer may be waiting for it in the same way.
void take_back_buffers(Communicator& communicator, const void* leased);

}  // namespace tutti
