// Errors as values: what failed, and at which peer, channel and step.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tutti {

/// The numbers are those of the C API (and of NCCL), so no translation is needed.
enum class Code : int {
  success = 0,
  cuda = 1,
  system = 2,
  internal = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote = 6,
  in_progress = 7,
  timeout = 8,
  last = timeout
};

std::string_view name(Code code);
/// The code that a peer told; `remote` if its number is not that of an error.
Code received_code(std::uint32_t number);

/// Each layer adds only what it knows; unset fields are -1 (sys_errno: 0).
struct Error {
  Code code = Code::internal;
  std::string what;
  int sys_errno = 0;
  int peer = -1;
  int channel = -1;
  int step = -1;

  Error&& at_peer(int rank) && {
    if (peer < 0) peer = rank;
    return std::move(*this);
  }
  Error&& at_step(int on_channel, int at) && {
    if (channel < 0) channel = on_channel;
    if (step < 0) step = at;
    return std::move(*this);
  }
  /// Prefixes the caller's operation: "map segment 3: no such file".
  Error&& during(std::string_view doing) &&;

  /// "timeout: no slot freed for 30 s [peer 5] [channel 1, step 12]"
  std::string text() const;
  /// The part of it that says what happened: "open a socket: Too many open files (errno 24): raise ulimit -n"
  std::string words() const;
  /// No descriptor was left in this process, or in the system.
  bool lacks_descriptor() const;
};

/// What the user passed or set is wrong.
inline Error invalid_argument(std::string what) {
  return {.code = Code::invalid_argument, .what = std::move(what)};
}
/// What the user does is wrong, or does not fit what other ranks do.
inline Error invalid_usage(std::string what) {
  return {.code = Code::invalid_usage, .what = std::move(what)};
}
/// Another process did it, or did not.
inline Error remote_error(std::string what, int peer = -1) {
  return {.code = Code::remote, .what = std::move(what), .peer = peer};
}
/// The system refused: `why` is an errno, or 0.
inline Error system_error(std::string what, int why = 0) {
  return {.code = Code::system, .what = std::move(what), .sys_errno = why};
}

/// An error on the heap, made and deleted out of line: the code of success, which is everywhere, stays small.
struct DeleteError {
  [[gnu::cold]] void operator()(Error* error) const;
};
using HeldError = std::unique_ptr<Error, DeleteError>;
[[gnu::cold]] HeldError on_heap(Error&& error);

/// A value, or the reason why there is none. Costs one pointer on success.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(on_heap(std::move(error))) {}

  explicit operator bool() const { return !error_; }
  T& operator*() & {
    assert(value_);
    return *value_;
  }
  const T& operator*() const& {
    assert(value_);
    return *value_;
  }
  T&& operator*() && {
    assert(value_);
    return *std::move(value_);
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Error& error() const& {
    assert(error_);
    return *error_;
  }
  Error&& error() && {
    assert(error_);
    return std::move(*error_);
  }

 private:
  std::optional<T> value_;
  HeldError error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(on_heap(std::move(error))) {}

  explicit operator bool() const { return !error_; }
  const Error& error() const& {
    assert(error_);
    return *error_;
  }
  Error&& error() && {
    assert(error_);
    return std::move(*error_);
  }

 private:
  HeldError error_;
};

template <class T>
T&& value_of(Result<T>& result) {
  return *std::move(result);
}
inline void value_of(Result<void>&) {}

}  // namespace tutti

// The value of a Result; where there is none, returns the error from the function. (A statement in an expression, as
// g++ and clang have them.)
#define TUTTI_TRY(expression)                 \
  ({                                          \
    auto tutti_result = (expression);         \
    if (!tutti_result) [[unlikely]]           \
      return std::move(tutti_result).error(); \
    ::tutti::value_of(tutti_result);          \
  })
