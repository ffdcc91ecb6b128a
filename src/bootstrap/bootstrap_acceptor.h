// The door of the start: lets in who knows the secret, and keeps nothing of others but their number.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "bootstrap/roster.h"
#include "bootstrap/shared_listener.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// Holds at most 64 connections that have proved nothing yet. When all are taken, those that have not even greeted make
/// room, oldest first; those that have are given a tenth of a second to answer their challenge, and two seconds when
/// nobody wants their place.
class Acceptor {
 public:
  /// Somebody who knows the secret.
  struct AuthenticatedConnection {
    Wire wire;
    std::string host;
    int rank;  ///< as claimed
    std::uint32_t version;
  };

  /// `secret` must outlive it; it is the one that `seat` was taken with.
  Acceptor(System& system, SharedListener::Registration registration, const Secret& secret)
      : system_(system), registration_(std::move(registration)), secret_(secret) {}

  /// Those who got through since last time. Without `accepting` nobody new is looked at.
  std::vector<AuthenticatedConnection> advance(bool accepting);
  /// Nobody new from now on; who is in between may go on.
  void close() { registration_ = {}; }

  /// One who got through has gone before it said more.
  void hung_up(int rank, const std::string& host) { refusals_.add_claim(rank, host, "hung up while greeting"); }

  /// Nobody is in between.
  bool idle() const { return pending_.empty(); }
  std::size_t sockets() const { return pending_.size() + (registration_.shared_listener ? 1 : 0); }
  const Refusals& refusals() const { return refusals_; }
  /// Why nobody could be accepted for the last two seconds. Where other starts share the listener, it may be one
  /// of their ranks that waits outside.
  std::optional<Error> stuck() const {
    return registration_.shared_listener ? registration_.shared_listener->stuck() : std::nullopt;
  }
  bool shared() const { return registration_.shared_listener && !registration_.shared_listener->alone(); }

  std::int64_t poll_set(std::vector<PollItem>& items, bool accepting) const;

 private:
  enum class Fate { waits, refused, hung_up, proved, elsewhere };  ///< hung_up: after a valid greeting
  void accept_some(std::vector<AuthenticatedConnection>& connections, bool accepting);
  void look_at(Pending one, std::vector<AuthenticatedConnection>& connections);
  void settle(Pending& one, Fate fate, std::vector<AuthenticatedConnection>& connections);
  bool make_room();
  void claims(const Pending& one, std::string_view what);
  Fate greet(Pending& one);
  Fate challenge(Pending& one);
  std::string host_of(const Socket& socket);
  bool full_of_greeted() const;
  std::int64_t await_callers(std::vector<PollItem>& items, bool accepting) const;

  System& system_;
  SharedListener::Registration registration_;  ///< empty once closed
  const Secret& secret_;
  std::deque<Pending> pending_;
  Refusals refusals_;
};

}  // namespace tutti::bootstrap
