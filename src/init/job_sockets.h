// Abstract unix sockets on which a job meets. Anybody may bind any name: those of other users are known by what the
// kernel says of them, and no name can be guessed and taken beforehand.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/own_sockets.h"

namespace tutti {

/// Listens as "job-" and random digits; connections keep the bounds of packets. Nothing on disk: the name goes with the
/// socket. Errors: system.
Result<UniqueSocket> listen_for_job(const std::string& job);

/// Names of sockets that listen for `job`, by anybody. Errors: system (/proc/net/unix cannot be read).
Result<std::vector<std::string>> listeners_for_job(const std::string& job);
/// The same in the text of /proc/net/unix.
std::vector<std::string> listeners_in(std::string_view table, const std::string& job);

struct JobCall {
  enum class Outcome {
    connected,
    other_user,  ///< for good
    no_answer,   ///< nobody there, or too many at the door
  };
  Outcome outcome = Outcome::no_answer;
  UniqueSocket fd;  ///< does not block
  pid_t pid = 0;    ///< who listens; 0: in a PID namespace that cannot be seen from here
};

/// Does not block.
JobCall call_job(const std::string& name);

/// Whether the other end belongs to the user of this process.
bool same_user(const UniqueSocket& fd);

}  // namespace tutti
