// The ways in which a rank is lost, and the words for each. docs/faults.md says who finds which, and how it spreads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/types.h"
#include "process/peer_process.h"
#include "transport/rank_area.h"

namespace tutti {

enum class LossKind : std::uint8_t {
  ended,             ///< its process has ended without leaving the communicator
  replaced,          ///< nobody serves for its process any more: that has ended, or become another program
  mute,              ///< its process lives, but answers its peers no more
  stopped,           ///< by a signal
  no_sign_of_life,   ///< its service thread does not beat, and /proc does not show why
  silent,            ///< nothing has come from its host
  connection_ended,  ///< the control connection, by the other end
  connection_reset,  ///< likewise, by something in between perhaps
  unreachable,       ///< its host does not answer
  bad_frame,         ///< it sent an invalid control message
  last = bad_frame
};

struct Loss {
  LossKind kind = LossKind::ended;
  std::int64_t ns = 0;      ///< for how long, where it has lasted
  std::string detail = {};  ///< the system's words

  /// Why: "its process was killed or exited without leaving the communicator".
  std::string why() const;
  /// `who`: "rank 2/8 (process 48211 on node-b)".
  std::string text(std::string_view who) const;
  Error error(std::string_view who, Rank rank) const;
};

/// How the rank at the other end of a control connection that ended with `error` is lost.
Loss loss_by(const Error& error);

/// Whether a rank of this host is stopped. A process that is slow or has no core counts as running in /proc. Where
/// /proc does not show it, it counts as stopped once its service thread has been silent for the limit.
class SignsOfLife {
 public:
  /// `passed_ns`: since the last look, as time that counts; 0: none does, and silence begins anew. `excused`: it need
  /// not give any sign.
  std::optional<Loss> look(PeerProcess& process, const AreaHeader& header, std::int64_t now_ns, std::int64_t passed_ns,
                           std::int64_t limit_ns, bool excused = false);

 private:
  std::uint32_t beats_ = 0;
  std::int64_t silent_ns_ = 0;
};

}  // namespace tutti
