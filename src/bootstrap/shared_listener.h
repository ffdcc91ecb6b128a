// One listening socket for all starts whose root is in this process, except starts that are given a port.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/descriptors.h"
#include "base/system.h"
#include "net/accept_pause.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// A connection that has not proved the secret yet.
struct Pending {
  Wire wire;
  std::int64_t since_ns;
  std::string host;  ///< asked at accept: the system no longer knows the address of a broken connection
  Bytes hello = {};  ///< read from the connection by another start, and not checked yet
  handshake::RootSide handshake = {};
};

/// One of the starts accepts the connections and hands each of them over to the start that the greeting names. One
/// thread advances all starts; any thread may make and drop them.
class SharedListener {
 public:
  /// One start's registration; once the start drops the entry, it is not called any more.
  class Entry;
  struct Registration {
    std::shared_ptr<SharedListener> shared_listener;
    std::shared_ptr<Entry> entry;
  };

  SharedListener(Socket listener, SocketAddress at);
  /// Port 0: any. Errors: system.
  static Result<std::shared_ptr<SharedListener>> open(System& system, const SocketAddress& at);

  /// Registers a start whose ranks know `secret`. Errors: system.
  static Result<Registration> enter(const std::shared_ptr<SharedListener>& shared_listener, const Secret& secret);

  const SocketAddress& at() const { return at_; }
  const Socket& listener() const { return listener_; }
  /// Where descriptors lack, accepts one connection by the spare one, if that has been lent or none could be accepted
  /// for two seconds.
  Result<Socket> accept(System& system);
  /// A start has failed, and tells so to one rank after the other.
  void lend_spare() { spare_lent_ = true; }

  /// Whether this start is the one to accept: the first start that wants to.
  bool may_accept(const Entry& entry, bool accepting);
  /// There is no other start.
  bool alone();
  /// True: `one` belongs to another start and has been handed to it. A connection whose greeting no start knows stays
  /// with the start that accepted it.
  bool hand_over(const Entry& from, Pending& one);
  /// Whether connections have been handed over to this start; take_handed_over returns them.
  bool has_handed_over(const Entry& entry);
  std::deque<Pending> take_handed_over(Entry& entry);

  /// When to accept again after a failure.
  std::int64_t accept_again_ns() const { return pause_.until_ns(); }
  /// Why no connection could be accepted for the last two seconds.
  const std::optional<Error>& stuck() const { return stuck_; }

 private:
  Socket listener_;
  const SocketAddress at_;
  AcceptPause pause_;
  std::optional<Error> stuck_;
  SpareDescriptor spare_;
  bool spare_lent_ = false;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Entry>> entries_;
};

}  // namespace tutti::bootstrap
