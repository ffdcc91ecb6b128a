// The door of the start: lets in who knows the secret, and keeps nothing of others but their number.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "comm/handshake.h"
#include "comm/roster.h"
#include "comm/wire.h"

namespace tutti::bootstrap {

/// Holds at most 64 connections that have proved nothing yet. When all are taken, those that have not even greeted make
/// room, oldest first; those that have are given a tenth of a second to answer their challenge, and two seconds when
/// nobody wants their place.
class Gate {
 public:
  /// Somebody who knows the secret.
  struct Guest {
    Wire wire;
    std::string host;
    int rank;  ///< as claimed
    std::uint32_t version;
  };

  /// `secret` must outlive it.
  Gate(System& system, Socket listener, const Secret& secret)
      : system_(system), listener_(std::move(listener)), secret_(secret) {}

  /// Those who got through since last time. Without `accepting` nobody new is looked at.
  std::vector<Guest> advance(bool accepting);
  /// Nobody new from now on; who is in between may go on.
  void close() { listener_ = Socket(); }

  /// One who got through has gone before it said more.
  void hung_up(int rank, const std::string& host) { refusals_.add_claim(rank, host, "hung up while greeting"); }

  /// Nobody is in between.
  bool idle() const { return pending_.empty(); }
  std::size_t sockets() const { return pending_.size() + (listener_ ? 1 : 0); }
  const Refusals& refusals() const { return refusals_; }
  /// Why nobody could be accepted for the last two seconds.
  const std::optional<Error>& stuck() const { return stuck_; }

  std::int64_t interests(std::vector<PollItem>& items, bool accepting) const;

 private:
  struct Pending {
    Wire wire;
    std::int64_t since_ns;
    std::string host;  ///< asked at once: of a connection that broke the system does not say it any more
    handshake::RootSide handshake = {};
  };
  enum class Fate { waits, refused, hung_up, proved };  ///< hung_up: after a valid greeting
  void accept_some(std::vector<Guest>& guests);
  void settle(Pending& one, Fate fate, std::vector<Guest>& guests);
  void accept_later(Error error);
  bool make_room();
  void claims(const Pending& one, std::string_view what);
  Fate greet(Pending& one);
  std::string host_of(const Socket& socket);
  bool full_of_greeted() const;

  System& system_;
  Socket listener_;
  const Secret& secret_;
  std::deque<Pending> pending_;
  Refusals refusals_;
  std::int64_t accept_again_ns_ = 0;
  std::int64_t failing_since_ns_ = 0;  ///< accept; 0: it does not
  std::optional<Error> stuck_;
};

}  // namespace tutti::bootstrap
