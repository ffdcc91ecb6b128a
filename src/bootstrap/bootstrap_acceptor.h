// Accepts connections for the start: admits those that prove the secret, and only counts the others.
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

/// Holds at most 64 unproven connections. When all 64 places are taken, connections that have not greeted make room,
/// oldest first. Connections that have greeted keep their place for a tenth of a second to answer their challenge, and
/// for two seconds if no other connection needs the place.
class Acceptor {
 public:
  /// A connection whose other end knows the secret.
  struct AuthenticatedConnection {
    Wire wire;
    std::string host;
    int rank;  ///< as claimed
    std::uint32_t version;
  };

  /// `secret` must outlive this; it must be the secret that `registration` was made with.
  Acceptor(System& system, SharedListener::Registration registration, const Secret& secret)
      : system_(system), registration_(std::move(registration)), secret_(secret) {}

  /// The connections that have proved the secret since the last call. Without `accepting`, no new connection is looked
  /// at.
  std::vector<AuthenticatedConnection> advance(bool accepting);
  /// The start has failed: see SharedListener.
  void lend_spare() {
    if (registration_.shared_listener) registration_.shared_listener->lend_spare();
  }
  /// Accepts no new connections; pending ones may continue.
  void close() { registration_ = {}; }

  /// For an authenticated connection that closed before it sent anything else.
  void hung_up(int rank, const std::string& host) { refusals_.add_claim(rank, host, "hung up while greeting"); }

  /// No connection is pending.
  bool idle() const { return pending_.empty(); }
  std::size_t sockets() const { return pending_.size() + (registration_.shared_listener ? 1 : 0); }
  const Refusals& refusals() const { return refusals_; }
  /// Why no connection could be accepted for the last two seconds. If other starts share the listener, the waiting
  /// connection may be from one of their ranks.
  std::optional<Error> stuck() const {
    return registration_.shared_listener ? registration_.shared_listener->stuck() : std::nullopt;
  }
  bool shared() const { return registration_.shared_listener && !registration_.shared_listener->alone(); }

  std::int64_t poll_set(std::vector<PollItem>& items, bool accepting) const;

 private:
  enum class Fate { waits, refused, hung_up, proved, elsewhere };  ///< hung_up: after a valid greeting
  void accept_some(std::vector<AuthenticatedConnection>& connections, bool accepting);
  void look_at(Pending one, std::vector<AuthenticatedConnection>& connections);
  void count(const Pending& one);
  void settle(Pending& one, Fate fate, std::vector<AuthenticatedConnection>& connections);
  bool make_room();
  /// The connection sent a valid greeting and received our challenge.
  void claims(const Pending& one, std::string_view what) { refusals_.add_claim(one.handshake.rank(), one.host, what); }
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
