// Opens a connection to a rank of another host: tries its addresses and proves the secret in both directions. Never
// blocks.
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
  /// Tries the addresses in turn, repeatedly, for `limit_ns`, or for ten seconds if no address ever accepts a
  /// connection. Each try gets a second, or three if the connection is accepted but nothing arrives. A try that has
  /// sent its proof is not given up before the limit: the peer may have taken the connection already.
  Connector(System& system, std::vector<SocketAddress> addresses, const Greeting& greeting, const ConnectionKey& key,
            std::int64_t limit_ns);

  /// The connection, once the peer has taken it; the connector must not be used afterwards. Errors: timeout, remote (no
  /// address worked; with the result of each address); system (no descriptor, for a second).
  Result<std::optional<Socket>> advance();

  /// The peer may have taken the connection of this try and sent its welcome.
  bool proven() const { return state_ == State::welcome; }

  /// Adds the handles to wait for; returns the latest time for the next advance.
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
  bool answered_ = false;            // this peer has accepted a connection: its host exists, and may be busy
  std::int64_t lacks_until_ns_ = 0;  // if there was no descriptor for the last try: from when on that is an error
  std::int64_t until_ns_ = 0;        // end of this try if nothing answers, or of the pause before the next try
  std::size_t at_ = 0;
  State state_ = State::pause;
  Secret secret_{};
  std::optional<Wire> wire_;
  std::optional<handshake::RankSide> side_;
  std::vector<std::string> met_;  // by address: result of the last try
};

}  // namespace tutti
