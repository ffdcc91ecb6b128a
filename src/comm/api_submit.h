// From checked arguments to a call under way: what all collectives of the C API have in common.
#pragma once

#include <cstddef>
#include <optional>

#include "comm/api_support.h"

namespace tutti::api {

inline const std::byte* bytes(const void* pointer) {
  return static_cast<const std::byte*>(pointer);
}
inline std::byte* bytes(void* pointer) {
  return static_cast<std::byte*>(pointer);
}

/// Gives the request its type and operator. Errors: invalid_argument.
Result<void> set_type_and_op(Request& request, int type, std::optional<int> op, const CommEntry& entry);

/// Runs the request, queues it, or adds it to the open group. The arguments were checked.
Result<void> start(CommEntry& entry, tuttiStream_t stream, const Request& request);

/// A refusal inside a group holds back the whole group.
Result<void> or_refuse(Result<void> result);

}  // namespace tutti::api
