// Starts collectives of the C API, once their arguments are checked.
#pragma once

#include <cstddef>
#include <optional>

#include "api/api_support.h"
#include "call/arguments.h"
#include "submit/blocking_call.h"

namespace tutti::api {

inline const std::byte* bytes(const void* pointer) {
  return static_cast<const std::byte*>(pointer);
}
inline std::byte* bytes(void* pointer) {
  return static_cast<std::byte*>(pointer);
}

/// Gives the request, which has its type, an operator of any kind. Errors: invalid_argument.
Result<void> set_any_op(Request& request, int op, const CommEntry& entry);

/// Gives the request its type and operator. Errors: invalid_argument.
inline Result<void> set_type_and_op(Request& request, int type, std::optional<int> op, const CommEntry& entry) {
  request.type = TUTTI_TRY(data_type(type));
  if (!op) return {};
  constexpr auto usual_types = static_cast<DataType>(device_type_count);
  if (static_cast<unsigned>(*op) > tuttiAvg || request.type >= usual_types) [[unlikely]]
    return set_any_op(request, *op, entry);
  request.op = static_cast<ReduceOp>(*op);
  return {};
}

/// `start` in a communicator with a GPU: first finds out whether the buffers are host or device memory. Errors: as
/// documented in tutti.h.
Result<void> start_beside_gpu(CommEntry& entry, tuttiStream_t stream, Request request);
/// Starts a send or receive if it is on device memory; returns false if it is on host memory. Errors: as
/// start_beside_gpu.
Result<bool> start_peer_on_gpu(CommEntry& entry, tuttiStream_t stream, PeerRequest request);

/// Errors: invalid_argument (`buffer` is device memory), cuda.
Result<void> check_on_host(const Communicator& communicator, const void* buffer);

/// Queues the request on a stream, or adds it to the open group.
Result<void> queue(CommEntry& entry, tuttiStream_t stream, const Request& request);

inline Result<void> start_on_host(CommEntry& entry, tuttiStream_t stream, const Request& request) {
  auto& communicator = entry.communicator;
  if (stream == nullptr && !Group::open()) return run_alone(*communicator, request);
  return queue(entry, stream, request);
}

/// Runs or queues the request, whose arguments have been checked.
inline Result<void> start(CommEntry& entry, tuttiStream_t stream, const Request& request) {
  auto& communicator = entry.communicator;
  if (communicator->failed()) return communicator->report_failure();
  if (communicator->members().some_gpu) [[unlikely]] {
    // Without a buffer the kind of memory is unknown, and ranks may have meant different kinds. No rank counts the
    // call.
    if (request.count == 0 && !request.layout && request.collective != Collective::barrier) return {};
    if (communicator->device() != nullptr) return start_beside_gpu(entry, stream, request);
  }
  return start_on_host(entry, stream, request);
}

/// Returns `result`. If it is an error and a group is open, nothing of the group will be started.
Result<void> or_refuse(Result<void> result);

}  // namespace tutti::api
