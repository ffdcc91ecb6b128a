// The listening socket of the starts that a process is the root of: one for all that are not given a port.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/system.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// A connection that has proved nothing yet.
struct Pending {
  Wire wire;
  std::int64_t since_ns;
  std::string host;  ///< asked at once: of a connection that broke the system does not say it any more
  Bytes hello = {};  ///< taken off the wire by another start, and not looked at yet
  handshake::RootSide handshake = {};
};

/// Connections are accepted by one of its starts, which hands each of them over to the start that its greeting means.
/// All starts are advanced by one thread; they may be made and dropped by any.
class SharedListener {
 public:
  /// What one start has of it; a start that lets go of its entry is not called any more.
  class Entry;
  struct Registration {
    std::shared_ptr<SharedListener> shared_listener;
    std::shared_ptr<Entry> entry;
  };

  SharedListener(Socket listener, SocketAddress at) : listener_(std::move(listener)), at_(std::move(at)) {}
  /// Port 0: any. Errors: system.
  static Result<std::shared_ptr<SharedListener>> open(System& system, const SocketAddress& at);

  /// A start whose ranks know `secret`. Errors: system.
  static Result<Registration> enter(const std::shared_ptr<SharedListener>& shared_listener, const Secret& secret);

  const SocketAddress& at() const { return at_; }
  const Socket& listener() const { return listener_; }
  Result<Socket> accept(System& system);

  /// Whether it is for this start to accept: the first one that wants to.
  bool may_accept(const Entry& entry, bool accepting);
  /// There is no other start.
  bool alone();
  /// True: `one` is another start's, and has gone there. A greeting that no start knows belongs to the
  /// one that accepted it.
  bool hand_over(const Entry& from, Pending& one);
  /// Whether connections have been handed over to this start; and these.
  bool has_handed_over(const Entry& entry);
  std::deque<Pending> take_handed_over(Entry& entry);

  /// When to accept again, after a failure.
  std::int64_t accept_again_ns() const { return accept_again_ns_; }
  /// Why nobody could be accepted for the last two seconds.
  const std::optional<Error>& stuck() const { return stuck_; }

 private:
  void accept_later(System& system, const Error& error);

  Socket listener_;
  const SocketAddress at_;
  std::int64_t accept_again_ns_ = 0;
  std::int64_t failing_since_ns_ = 0;  ///< accept; 0: it does not
  std::optional<Error> stuck_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Entry>> entries_;
};

}  // namespace tutti::bootstrap
