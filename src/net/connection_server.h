// Accepts connections from ranks of other hosts: the listeners of a process, and the listening side of the handshake.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "net/accept_pause.h"
#include "net/arrivals.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti {

/// A Task of the service thread, which also answers the probes of reach_proof.h. Before its proof, only the frame being
/// read is kept of a connection. At most 64 connections are pending, each for at most 2 s; a new one replaces the
/// oldest.
class ConnectionServer final : public Task {
 public:
  /// Listens at each of the addresses, on any port; addresses where listening fails are left out. Errors: that of the
  /// last address, if none is left.
  static Result<std::shared_ptr<ConnectionServer>> open(System& system, const std::vector<std::string>& hosts);

  /// The addresses to send to peers.
  const std::vector<SocketAddress>& addresses() const { return addresses_; }

  /// Accepts connections for `arrivals` from now on, as long as the object lives. Any thread.
  void expect(const std::shared_ptr<Arrivals>& arrivals);

  /// Why no connection could be accepted for the last second; nothing if there is no problem. Those for whom
  /// connections are expected are told too. Any thread.
  std::optional<Error> stuck();

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct Pending {
    Wire wire;
    std::int64_t deadline_ns = 0;
    Greeting words = {};
    std::shared_ptr<Arrivals> arrivals = {};  ///< null: its greeting has yet to arrive
    Secret secret = {};
    handshake::RootSide handshake = {};
    Bytes probe = {};     ///< replaces a greeting: the part that has arrived
    bool proven = false;  ///< only output is left to send
  };
  enum class Step { more, waits, over };

  explicit ConnectionServer(System& system) : system_(system) {}
  struct Listener {
    Socket socket;
    AcceptPause pause;
  };
  void accept_from(Listener& listener, std::int64_t now_ns);
  void cannot_accept(Listener& listener, Error error);
  void report_stuck(const std::optional<Error>& why);
  Step step(Pending& one);
  Step greeted(Pending& one, const Bytes& bytes);
  Step probed(Pending& one, const Bytes& bytes);
  template <class Wanted>
  std::shared_ptr<Arrivals> find_arrivals(Wanted wanted);

  System& system_;
  std::vector<Listener> listeners_;
  std::vector<SocketAddress> addresses_;
  std::deque<Pending> pending_;
  std::mutex mutex_;
  std::optional<Error> stuck_;
  std::vector<std::weak_ptr<Arrivals>> expected_;
};

}  // namespace tutti
