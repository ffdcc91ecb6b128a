// Where ranks of other hosts connect: the listeners of a process, and the handshake on what comes in.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "net/arrivals.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti {

/// A Task of the service thread, which also answers the probes of reach_proof.h. Nothing is kept of a connection before
/// its proof but the frame being read; at most 64 pend, each for at most 2 s, the oldest makes room for a new one.
class ConnectionServer final : public Task {
 public:
  /// Listens at each of the addresses, on any port; those that cannot be listened at are left out.
  /// Errors: that of the last one, where none is left.
  static Result<std::shared_ptr<ConnectionServer>> open(System& system, const std::vector<std::string>& hosts);

  /// What to tell peers.
  const std::vector<SocketAddress>& addresses() const { return addresses_; }

  /// From now on connections may come for `arrivals`, as long as somebody holds it. Any thread.
  void expect(const std::shared_ptr<Arrivals>& arrivals);

  /// Why nobody could be accepted for the last second; nothing while all is well. Any thread.
  std::optional<Error> stuck();

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct Pending {
    Wire wire;
    std::int64_t deadline_ns = 0;
    Bytes greeting = {};
    Greeting words = {};
    std::shared_ptr<Arrivals> arrivals = {};
    Secret secret = {};
    handshake::RootSide handshake = {};
    Bytes probe = {};     ///< in the place of a greeting: as far as it has come
    bool proven = false;  ///< what is left is to be sent
  };
  enum class Step { more, waits, over };

  explicit ConnectionServer(System& system) : system_(system) {}
  void accept_from(Socket& listener, std::int64_t now_ns);
  void be_deaf(Error error, std::int64_t now_ns);
  Step step(Pending& one);
  Step greeted(Pending& one, const Bytes& bytes);
  Step probed(Pending& one, const Bytes& bytes);
  template <class Wanted>
  std::shared_ptr<Arrivals> find_arrivals(Wanted wanted);

  System& system_;
  std::vector<Socket> listeners_;
  std::vector<SocketAddress> addresses_;
  std::deque<Pending> pending_;
  std::int64_t deaf_until_ns_ = 0;  // no descriptor was left to accept with,
  std::int64_t deaf_since_ns_ = 0;  //   since then; 0: all is well
  std::mutex mutex_;
  std::optional<Error> stuck_;
  std::vector<std::weak_ptr<Arrivals>> expected_;
};

}  // namespace tutti
