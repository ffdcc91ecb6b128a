// Abstract unix sockets on which the ranks of a job meet. Any process may bind any name, so the kernel's credentials
// identify sockets of other users, and random names cannot be guessed and taken beforehand.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/own_sockets.h"

namespace tutti {

/// Listens as "job-" and random digits; connections keep packet boundaries. Nothing is left on disk: the name vanishes
/// with the socket. Errors: system.
Result<UniqueSocket> listen_for_job(const std::string& job);

/// Names of the sockets, of any user, that listen for `job`. Errors: system (/proc/net/unix cannot be read).
Result<std::vector<std::string>> listeners_for_job(const std::string& job);
/// As listeners_for_job, from the text of /proc/net/unix.
std::vector<std::string> listeners_in(std::string_view table, const std::string& job);

struct JobCall {
  enum class Outcome {
    connected,
    other_user,  ///< permanent
    no_answer,   ///< no listener, or its queue is full
  };
  Outcome outcome = Outcome::no_answer;
  UniqueSocket fd;  ///< nonblocking
  pid_t pid = 0;    ///< of the listener; 0: in a PID namespace that is not visible from here
};

/// Does not block. Errors: system (no socket).
Result<JobCall> call_job(const std::string& name);

}  // namespace tutti
