// Starts collectives of the C API, once their arguments are checked.
#pragma once

#include <cstddef>
#include <optional>

#include "api/api_support.h"
#include "call/arguments.h"
#include "submit/blocking_call.h"
#include "submit/submit_call.h"

namespace tutti::api {

inline const std::byte* bytes(const void* pointer) {
  return static_cast<const std::byte*>(pointer);
}
inline std::byte* bytes(void* pointer) {
  return static_cast<std::byte*>(pointer);
}

/// The request of a call on these buffers, which has no type and operator yet. The smallest calls make one, too.
[[gnu::always_inline]] inline Request request_of(Collective collective, const void* input, void* output,
                                                 std::size_t count = 0, int root = 0) {
  return {.collective = collective, .input = bytes(input), .output = bytes(output), .count = count, .root = root};
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

/// The stream that a call names. Errors: invalid_argument (a tuttiStream_t that was destroyed).
Result<CallStream> named(tuttiStream_t stream);

/// Runs or queues the request, whose arguments have been checked. A part of the smallest calls, too.
[[gnu::always_inline]] inline Result<void> start(CommEntry& entry, tuttiStream_t stream, Request& request) {
  auto& communicator = entry.communicator;
  if (communicator->failed()) return communicator->report_failure();
  if (stream == nullptr && !Group::open() && !communicator->members().some_gpu) [[likely]] {  // the route is plain
    if (!communicator->members().spans_hosts()) [[likely]]
      return run_alone(*communicator, request);
    request.route.path = Path::across_hosts;
    return run_in_turn(*communicator, request);
  }
  return submit(communicator, request, TUTTI_TRY(named(stream)));
}

/// If a group is open, nothing of it will be started.
[[gnu::cold]] void refuse_group(const Error& why);

/// Returns `result`. If it is an error, see refuse_group.
inline Result<void> or_refuse(Result<void> result) {
  if (!result) [[unlikely]]
    refuse_group(result.error());
  return result;
}

/// As guarded, of a call that a group may contain: see or_refuse.
template <class Body>
tuttiResult_t guarded_in_group(Body&& body) noexcept {
  return guarded([&] { return or_refuse(body()); });
}

}  // namespace tutti::api
