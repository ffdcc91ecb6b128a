// Signs of life between hosts: when this rank gives its own, and which of the others has been silent for too long.
#pragma once

#include <cstdint>
#include <span>

#include "base/system.h"
#include "comm/control_link.h"

namespace tutti {

/// Silence is counted in the time that this thread could use: while nothing comes it looks often, and each look counts
/// for what it was to take. On a machine on which threads wait for cores, where peers beat late, silence grows slowly,
/// too. Whether a rank is stopped is best seen on its own host, so while any rank of that host is heard, this is left
/// to it (see PeerWatch). A rank under a debugger announces this while it can, and may then be silent.
class Heartbeat {
 public:
  /// As for ControlLinks.
  Heartbeat(System& system, std::int64_t silence_ns, std::int64_t start_ns);

  /// False: silence is allowed.
  bool beats() const { return beat_ns_ != 0; }

  /// Counts the time since the last look as silence, which whatever is read then ends.
  void pass_time(std::span<ControlLink> links);
  /// Beats, if it is time.
  void beat(std::span<ControlLink> links);
  /// Calls ranks that are late. A rank that answers lives, whatever holds up its connection. A call that is not
  /// advanced any more is hung up, or it would go on waking the service thread. `watches`: false hangs up all.
  void call_late(std::span<ControlLink> links, bool watches);
  /// A rank that is lost because it is silent, or null.
  ControlLink* find_silent(std::span<ControlLink> links) const;
  /// When to look next.
  std::int64_t plan_look(std::span<const ControlLink> links);

  bool heard_lately(const ControlLink& link) const { return link.silent_ns < silence_ns_ / 2; }
  /// For how long nothing has come, until now; 0: no beat is missing.
  std::int64_t late_ns(const ControlLink& link) const;

 private:
  bool is_silent(const ControlLink& link) const;

  System& system_;
  std::int64_t silence_ns_;
  std::int64_t start_ns_;
  std::int64_t beat_ns_;  // time between beats; 0: no beats
  std::int64_t next_beat_ns_ = 0;
  std::int64_t look_for_debugger_ns_ = 0;
  bool traced_ = false;
  std::int64_t looked_ns_ = 0;        // 0: not yet
  std::int64_t look_planned_ns_ = 0;  // when this thread was to look next
};

}  // namespace tutti
