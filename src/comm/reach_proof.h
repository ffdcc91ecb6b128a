// Which of the hosts' addresses can be used: each is called by every other host before anything depends on it.
//
//   prober → door   probe    magic, version, from, to, address, nonce, HMAC("probe", all that)
//   door → prober   answer   magic, HMAC("answer", probe)
//
// The answer shows that the address leads to the host that said so, and not to another one that has the same address
// (every host's docker0 has 172.17.0.1).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "comm/unique_id.h"

namespace tutti {

struct ReachLimits {
  std::int64_t try_ms = 2'000;  ///< one address, from the call to the answer; a lost first packet is sent again at 1 s
  std::int64_t pending_ms = 2'000;  ///< a caller that says nothing
  std::size_t at_once = 64;         ///< calls under way; callers that have proved nothing
};

/// Of one host, as the others are told.
using HostAddresses = std::vector<SocketAddress>;

/// What one host found: by host and address.
class ReachMap {
 public:
  ReachMap() = default;
  explicit ReachMap(std::span<const HostAddresses> hosts);

  bool reached(std::size_t host, std::size_t address) const { return reached_[host][address]; }
  void set(std::size_t host, std::size_t address) { reached_[host][address] = true; }

  /// A bit for each address, in the order of hosts.
  std::vector<std::byte> encode() const;
  /// Errors: remote (not of these hosts).
  static Result<ReachMap> decode(std::span<const std::byte> bytes, std::span<const HostAddresses> hosts);

 private:
  std::vector<std::vector<bool>> reached_;
};

/// The listening side of one host, for as long as it lives: a Task of the service thread. It keeps nothing of a
/// connection that has not shown the secret, holds a bounded number of them (a newcomer takes the oldest one's place),
/// and answers any number of probes.
class ReachDoor final : public Task {
 public:
  /// `self`: this host's number. `listeners`: of its addresses.
  ReachDoor(System& system, const Secret& secret, std::size_t self, std::vector<Socket> listeners,
            const ReachLimits& limits = {});
  ~ReachDoor() override;

  bool advance() override;
  std::int64_t interests(std::vector<PollItem>& items) override;

 private:
  struct Caller;
  void accept_some();
  bool serve(Caller& caller);
  bool serve_all();

  System& system_;
  Secret secret_;
  std::size_t self_;
  std::vector<Socket> listeners_;
  ReachLimits limits_;
  std::vector<Caller> callers_;
};

/// The calling side of one host: a state machine that calls every address of every other host. Where it is cut off
/// without an answer, by a door with too many callers, it calls again for a while.
class ReachProof {
 public:
  ReachProof(System& system, const Secret& secret, std::size_t self, std::vector<HostAddresses> hosts,
             const ReachLimits& limits = {});
  ~ReachProof();

  /// True when all are answered or given up. Never fails: what cannot be reached is not reached, and `why` says more.
  bool advance();
  std::int64_t interests(std::vector<PollItem>& items) const;

  /// After advance() said true. Its own addresses count as reached.
  const ReachMap& map() const { return map_; }
  /// "host 2 at 10.0.0.3 port 4711: connection refused", for each that was not reached; for the log.
  const std::vector<std::string>& why() const { return why_; }

 private:
  struct Call;
  struct Place {
    std::size_t host;
    std::size_t address;
  };
  void call_some();
  bool begin(Call& call);
  bool serve(Call& call);
  bool cut_off(Call& call, const Error& error);
  void fail(const Place& place, const std::string& reason);

  System& system_;
  Secret secret_;
  std::size_t self_;
  std::vector<HostAddresses> hosts_;
  ReachLimits limits_;
  ReachMap map_;
  std::deque<Place> to_call_;
  std::vector<Call> calls_;
  std::vector<std::string> why_;
};

/// Which addresses of each host all hosts have reached, in the hosts' order of preference, from the maps of all hosts
/// by number. Errors: system (a host that has none: which, and who did not reach what), remote (a map too few).
Result<std::vector<std::vector<std::size_t>>> proven_addresses(std::span<const HostAddresses> hosts,
                                                               std::span<const ReachMap> maps);

}  // namespace tutti
