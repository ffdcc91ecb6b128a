// The descriptor that a launcher leaves to a rank, and the words that go over it. Every answer has a bound and a limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

/// One answer taken apart: "cmd=get_result rc=0 value=x".
class PmiWords {
 public:
  /// PMI-1 separates by ' ', PMI-2 by ';'. Errors: remote (a word without '=', or more than 64 of them).
  static Result<PmiWords> read(std::string_view text, char separator);

  /// Of the first word of this name; empty where there is none.
  std::string_view value(std::string_view name) const;
  /// That the answer is a `command`, and that its rc, if it says one, is 0. Errors: remote, with what was said, but for
  /// the value, which may be a secret.
  Result<void> expect(std::string_view command) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

class PmiWire {
 public:
  /// Errors: invalid_usage (not open here; or an MPI library in this process speaks over it).
  static Result<PmiWire> open(System& system, int fd);

  Result<void> send(std::string_view text, std::int64_t deadline_ns);
  /// Up to the end of the line, without it; at most 4 KiB.
  Result<std::string> line(std::int64_t deadline_ns);
  /// PMI-2: six digits, and as many bytes; at most 64 KiB.
  Result<std::string> frame(std::int64_t deadline_ns);

 private:
  PmiWire(System& system, int fd) : system_(&system), fd_(fd) {}
  Result<void> wait(bool to_write, std::int64_t deadline_ns);
  Result<void> receive_some(std::int64_t deadline_ns);

  System* system_;
  int fd_;  ///< the launcher's: never closed by us
  std::string received_;
};

}  // namespace tutti
