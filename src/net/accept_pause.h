// What a listener does when accept fails for lack of descriptors.
#pragma once

#include <cstdint>
#include <utility>

#include "base/system.h"

namespace tutti {

/// Peers whose connections wait cannot be told why. Each descriptor that is closed makes room for one of them, so the
/// condition may pass: the listener pauses, then tries again, and notices when a peer waits for too long.
class AcceptPause {
 public:
  AcceptPause(std::int64_t pause_ns, std::int64_t limit_ns) : pause_ns_(pause_ns), limit_ns_(limit_ns) {}

  /// When to accept again (now_ns).
  std::int64_t until_ns() const { return until_ns_; }
  /// A connection waited when accept failed last.
  bool waits() const { return waits_since_ns_ >= 0; }

  enum class Waiter {
    none,     ///< descriptors lack, but nobody waits
    waits,    ///< for less than the limit
    too_long  ///< somebody has waited for all of the limit
  };
  /// To be called when accept has failed; looks whether a connection waits at this handle of `system`.
  Waiter failed(System& system, int listener) {
    PollItem item{.handle = listener, .want_read = true};
    system.poll({&item, 1}, 0);
    if (!item.ready) {
      waits_since_ns_ = -1;
      return Waiter::none;
    }
    const std::int64_t now = system.now_ns();
    until_ns_ = now + pause_ns_;
    if (waits_since_ns_ < 0) waits_since_ns_ = now;
    return now - waits_since_ns_ < limit_ns_ ? Waiter::waits : Waiter::too_long;
  }
  /// To be called when accept has worked. True: it had failed before.
  bool worked() { return std::exchange(waits_since_ns_, -1) >= 0; }

 private:
  std::int64_t pause_ns_;
  std::int64_t limit_ns_;
  std::int64_t until_ns_ = 0;
  std::int64_t waits_since_ns_ = -1;  ///< since when a connection waits that cannot be accepted; -1: none does
};

}  // namespace tutti
