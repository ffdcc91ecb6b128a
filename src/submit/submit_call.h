// Starts a call whose arguments have been checked: now, with the open group, or on its stream.
#pragma once

#include <memory>

#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

class Stream;

/// The stream that a call names; at most one of both.
struct CallStream {
  std::shared_ptr<Stream> host = {};  ///< a tuttiStream_t
  void* gpu = nullptr;                ///< what else was passed: a cudaStream_t, if it is valid
};

/// Finds the route of the call, which it writes into the request, and starts the call. Errors: as documented in
/// tutti.h.
Result<void> submit(const std::shared_ptr<Communicator>& communicator, Request& request, const CallStream& stream);
/// The calling thread must be Uncancelled.
Result<void> submit(const std::shared_ptr<Communicator>& communicator, PeerRequest& request, const CallStream& stream);

/// Errors: invalid_argument (`buffer` is device memory), cuda.
Result<void> check_on_host(const Communicator& communicator, const void* buffer);

}  // namespace tutti
