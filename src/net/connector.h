// Opens a connection to a rank of another host: tries its addresses, proves the secret both ways. Never blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "net/greeting.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti {

class Connector {
 public:
  /// Tries the addresses one after the other, over and over for `limit_ns`, or ten seconds where nobody ever answers
  /// the call: each for a second, or for three where somebody answers but says nothing. A try that has shown its proof
  /// is not given up before the limit: the peer may have taken the connection already.
  Connector(System& system, std::vector<SocketAddress> addresses, const Greeting& greeting, const ConnectionKey& key,
            std::int64_t limit_ns);

  /// The connection, once the peer has taken it; then the connector is of no more use. Errors: timeout, remote: no
  /// address was any good, with what each of them met; system.
  Result<std::optional<Socket>> advance();

  /// The peer may have taken the connection of this try, and said so.
  bool proven() const { return state_ == State::welcome; }

  /// The address that was good. After advance gave a connection.
  const SocketAddress& reached() const { return addresses_[at_]; }

  /// Adds the handles to wait for; returns when to come back at the latest.
  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  enum class State { pause, challenge, welcome };
  Result<void> begin();
  Result<std::optional<Socket>> step();
  void try_next(const std::string& why);
  bool gives_up(std::int64_t now_ns);

  System& system_;
  std::vector<SocketAddress> addresses_;
  Greeting greeting_;
  ConnectionKey key_;
  std::int64_t give_up_ns_;
  std::int64_t give_up_unanswered_ns_;
  bool answered_ = false;      // a call of this peer: its host is there, and may be busy
  std::int64_t until_ns_ = 0;  // of this try while nobody answers, or of the pause before the next
  std::size_t at_ = 0;
  State state_ = State::pause;
  Secret secret_{};
  std::optional<Wire> wire_;
  std::optional<handshake::RankSide> side_;
  std::vector<std::string> met_;  // by address: how the last try ended
};

}  // namespace tutti
