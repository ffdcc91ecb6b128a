// Shared by all C functions: the guard that turns exceptions and errors into codes, and the tables of handles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "api/handles.h"
#include "base/uncancelled.h"
#include "comm/communicator.h"
#include "submit/group.h"
#include "tutti/tutti.h"

namespace tutti::api {

/// An operator that a user created: a function, or without one a pre-multiplied sum.
struct UserOp {
  DataType type = DataType::uint8;
  std::uint64_t scalar = 0;
  UserFunction function = {};
};

/// The state behind a tuttiComm_t.
struct CommEntry {
  std::shared_ptr<Communicator> communicator;
  std::map<int, UserOp> user_ops;  ///< by tuttiRedOp_t; used by one thread at a time
  int next_op = tuttiNumOps;
};

/// The handles of one kind. Never destroyed: threads may still use a handle while the process exits.
template <class T>
HandleTable<T>& handles() {
  static auto* const table = new HandleTable<T>;
  return *table;
}

/// The calling thread's last error, for tuttiGetLastError.
struct LastWords {
  tuttiResult_t result = tuttiSuccess;
  std::string text;
};
LastWords& last_words();

tuttiResult_t report(const Error& error);

/// Runs `body`, a Result<void>() function, and lets no exception out. A cancelled thread must not be unwound through
/// this function: if the body may reach a cancellation point, the body itself must prevent cancellation (see
/// Uncancelled).
template <class Body>
tuttiResult_t guarded_but_for_cancellation(Body&& body) noexcept {
  try {
    Result<void> result = body();
    return result ? tuttiSuccess : report(result.error());
  } catch (const std::bad_alloc&) {
    return report(Error{.code = Code::system, .what = "out of memory"});
  }
}

/// As guarded_but_for_cancellation, but the whole body is no cancellation point.
template <class Body>
tuttiResult_t guarded(Body&& body) noexcept {
  const Uncancelled whole;
  return guarded_but_for_cancellation(std::forward<Body>(body));
}

using CommUse = HandleTable<CommEntry>::Use;

/// Errors: invalid_argument (NULL, or not an open communicator); invalid_usage (in a forked child).
Result<CommUse> use(tuttiComm_t comm);
/// Null for the NULL stream. Errors: as use(tuttiComm_t).
Result<std::shared_ptr<Stream>> use(tuttiStream_t stream);

Result<void> not_null(const void* pointer, const char* name);

/// Like snprintf: writes at most `capacity` bytes to `to`, the last of them 0; `length`, unless null, gets the length
/// of the whole text. Does not cut a UTF-8 character.
void write_text(const std::string& all, char* to, std::size_t capacity, std::size_t* length);

/// A new handle for `communicator`. Errors: system (too many).
Result<tuttiComm_t> publish(std::shared_ptr<Communicator> communicator);

}  // namespace tutti::api
