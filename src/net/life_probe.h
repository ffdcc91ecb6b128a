// Calls a rank of another host to find out whether it lives, beside the connection on which it is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/system.h"
#include "net/greeting.h"
#include "net/wire.h"

namespace tutti {

/// Where and how a rank can be called.
struct ProbeTarget {
  ConnectionKey key = {};
  int from = 0;
  int to = 0;
  std::vector<SocketAddress> addresses = {};  ///< none: it cannot be called
};

/// After a cut of the network TCP may wait for as long again before it sends lost bytes once more, and no kernel before
/// Linux 6.15 lets that be changed. A new connection gets through at once. It asks what hosts ask each other at the
/// start (reach_proof.h); the answer comes from the service thread of the rank's process, so the process runs. A state
/// machine that is advanced.
class LifeProbe {
 public:
  explicit LifeProbe(ProbeTarget line) : line_(std::move(line)) {}
  LifeProbe(const LifeProbe&) = delete;
  LifeProbe& operator=(const LifeProbe&) = delete;

  /// Begins a call when the one before has had `every_ns`; the addresses take turns. True: the rank has answered.
  bool advance(System& system, std::int64_t every_ns);
  /// How many calls in a row were turned away: nobody listens, or whoever does knows no such rank (any more). A
  /// listener that is too busy turns one away, too.
  int turned_away() const { return turned_away_; }
  /// Hangs up.
  void rest() { wire_.reset(); }
  void poll_set(std::vector<PollItem>& items) const {
    if (wire_) items.push_back(wire_->interest());
  }

 private:
  void call(System& system);
  void fail(const Error& error);

  ProbeTarget line_;
  std::optional<Wire> wire_;
  Bytes probe_;
  std::size_t calls_ = 0;
  std::int64_t called_ns_ = 0;
  int turned_away_ = 0;
};

/// Whether anybody still answers for a peer that is to connect. For a peer of whose end no control connection would
/// tell. It may be in no hurry, so it is called.
class PeerPresence {
 public:
  /// No addresses: it is not asked for.
  explicit PeerPresence(ProbeTarget target) : probe_(std::move(target)) {}

  /// True: nobody answers for it any more. To be asked again and again, from when it is first waited for.
  bool gone(System& system) {
    constexpr std::int64_t begin_after_ns = 2'000'000'000, every_ns = 500'000'000;
    constexpr int turned_away_max = 5;
    const std::int64_t now = system.now_ns();
    if (since_ns_ == 0) since_ns_ = now;
    if (now - since_ns_ < begin_after_ns) return false;
    if (probe_.advance(system, every_ns)) since_ns_ = now;
    return probe_.turned_away() >= turned_away_max;
  }
  void poll_set(std::vector<PollItem>& items) const { probe_.poll_set(items); }

 private:
  LifeProbe probe_;
  std::int64_t since_ns_ = 0;  // of waiting, or of its last answer
};

}  // namespace tutti
