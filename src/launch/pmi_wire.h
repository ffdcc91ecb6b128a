// The descriptor that a launcher passes to a rank, and the messages on it. Every answer has a size limit and a time
// limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system.h"

namespace tutti {

/// One answer, parsed: "cmd=get_result rc=0 value=x".
class PmiWords {
 public:
  /// PMI-1 separates words by ' ', PMI-2 by ';'. Errors: remote (a word without '=', or more than 64 words).
  static Result<PmiWords> read(std::string_view text, char separator);

  /// The value of the first word with this name; empty if there is none.
  std::string_view value(std::string_view name) const;
  /// Checks that the answer is a `command` and that its rc, if present, is 0. Errors: remote, with the answer except
  /// for its value, which may be a secret.
  Result<void> expect(std::string_view command) const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

/// PMI-1: a line of words. PMI-2: six digits, then as many bytes of words.
enum class PmiForm { line, frame };

class PmiWire {
 public:
  /// Errors: invalid_usage (not open in this process; or in use by an MPI library of this process).
  static Result<PmiWire> open(System& system, int fd);

  /// The answer to `words`, in the same form, which PmiWords::expect has found to be an `answer`. After an error every
  /// call returns it: answers can no longer be matched to questions.
  Result<PmiWords> ask(PmiForm form, const std::string& words, std::string_view answer, std::int64_t deadline_ns);
  /// As ask; gives up after a second.
  void say_goodbye(PmiForm form, const std::string& words, std::string_view answer);

 private:
  PmiWire(System& system, int fd) : system_(&system), fd_(fd) {}
  Result<PmiWords> exchange(PmiForm form, const std::string& words, std::string_view answer, std::int64_t deadline_ns);
  Result<void> send(std::string_view text, std::int64_t deadline_ns);
  /// The text up to the end of the line, without it; at most 4 KiB.
  Result<std::string> line(std::int64_t deadline_ns);
  /// At most 64 KiB.
  Result<std::string> frame(std::int64_t deadline_ns);
  Result<void> wait(bool to_write, std::int64_t deadline_ns);
  Result<void> receive_some(std::int64_t deadline_ns);

  System* system_;
  int fd_;  ///< the launcher's: tutti never closes it
  std::string received_;
  std::optional<Error> failure_;
};

}  // namespace tutti
