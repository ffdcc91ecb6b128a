// Which of the hosts' addresses can be used: each is called by every other host before anything depends on it.
//
//   caller → listener   probe    magic, communicator, rank called, from, address, nonce, HMAC("probe", all that)
//   listener → caller   answer   magic, HMAC("answer", probe)
//
// The answer shows that the address leads to the host that said so, and not to another one that has the same address
// (every host's docker0 has 172.17.0.1). Probes come where all connections of other hosts come: to ConnectionServer.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/system.h"
#include "net/digest.h"
#include "net/greeting.h"

namespace tutti {

struct ReachLimits {
  std::int64_t try_ms = 2'000;      ///< one address, until the call gets through; a lost packet is sent again at 1 s
  std::int64_t answer_ms = 10'000;  ///< from there to the answer: a busy host is slow, not gone
  std::int64_t host_ms = 10'000;    ///< as try_ms, as long as none of the host's addresses is reached
  std::size_t at_once = 64;         ///< calls that were begun just now
  std::int64_t fresh_ms = 200;      ///< so long is just now: older ones cost next to nothing,
  std::size_t calls_max = 512;      ///<   but descriptors
};

/// Where one rank listens.
struct ReachAddress {
  int rank = 0;
  SocketAddress at;
  int nic = 0;   ///< number of the interface among those of its host
  int mbps = 0;  ///< of the interface; 0: not known
};

/// A host as the others are told of it.
struct ReachHost {
  std::string name;  ///< for messages: "node-b (rank 4)"
  std::vector<ReachAddress> addresses;
};

/// The first words of a call.
struct ReachProbe {
  static constexpr std::size_t bytes = 8 + 8 + 3 * 4 + 16 + sizeof(Digest);
  std::uint64_t communicator = 0;
  int rank = 0;  ///< who is called

  /// From its beginning, at least as long as a greeting. Nothing: that is no probe. Nothing of it is proven.
  static std::optional<ReachProbe> read(std::span<const std::byte> begun);
};

/// The answer to a probe that was made with this key. Errors: remote (another key), system.
Result<Bytes> answer_probe(const ConnectionKey& key, std::span<const std::byte> probe);

/// What one host found: by host and address. Two bits of each: whether it was reached, and whether it is wide, about as
/// fast as the fastest way from here to its host.
class ReachMap {
 public:
  ReachMap() = default;
  explicit ReachMap(std::span<const ReachHost> hosts);

  bool reached(std::size_t host, std::size_t address) const { return paths_[host][address].reached; }
  bool wide(std::size_t host, std::size_t address) const { return paths_[host][address].wide; }
  void set(std::size_t host, std::size_t address) { paths_[host][address].reached = true; }
  void set_wide(std::size_t host, std::size_t address) { paths_[host][address].wide = true; }

  /// In the order of hosts.
  std::vector<std::byte> encode() const;
  /// Errors: remote (not of these hosts).
  static Result<ReachMap> decode(std::span<const std::byte> bytes, std::span<const ReachHost> hosts);

 private:
  struct Path {
    bool reached = false;
    bool wide = false;
  };
  std::vector<std::vector<Path>> paths_;
};

/// The calling side of one host: a state machine that calls every address of every other host. Where it is cut off
/// without an answer, by a listener with too many callers, it calls again for a while.
class ReachProof {
 public:
  ReachProof(System& system, const ConnectionKey& key, std::size_t self, std::vector<ReachHost> hosts,
             const ReachLimits& limits = {});
  ~ReachProof();
  ReachProof(const ReachProof&) = delete;
  ReachProof& operator=(const ReachProof&) = delete;

  /// True when all are answered or given up. Never fails: what cannot be reached is not reached, and `why` says more.
  bool advance();
  std::int64_t poll_set(std::vector<PollItem>& items) const;

  /// After advance() said true. Its own addresses count as reached.
  const ReachMap& map() const { return map_; }
  /// "node-b (rank 4) at 10.0.0.3 port 4711: connection refused", for each that was not reached; for the log.
  const std::vector<std::string>& why() const { return why_; }

 private:
  struct Call;
  struct Place {
    std::size_t host;
    std::size_t address;
  };
  bool may_call() const;
  void call_some();
  bool begin(Call& call);
  bool serve(Call& call);
  bool is_late(const Call& call) const;
  bool cut_off(Call& call, const Error& error);
  void fail(const Place& place, const std::string& reason);
  int rate_of(const Call& call);
  void find_wide();

  System& system_;
  ConnectionKey key_;
  std::size_t self_;
  std::vector<ReachHost> hosts_;
  ReachLimits limits_;
  ReachMap map_;
  std::vector<bool> met_;                // by host: one of its addresses was reached
  std::vector<std::vector<int>> rates_;  // by host and address: Mbit/s, of those reached
  std::deque<Place> to_call_;
  std::vector<Call> calls_;
  std::vector<std::string> why_;
};

/// Which addresses of each host the host `self` may use, in their order: those that all hosts have reached; of a host
/// that has none such, those that `self` has reached. From the maps of all hosts, by number.
/// Errors: system (some host reaches none of another one's: both, and their addresses), remote (a map too few).
/// Whether there is an error does not depend on `self`.
Result<std::vector<std::vector<std::size_t>>> usable_addresses(std::span<const ReachHost> hosts,
                                                               std::span<const ReachMap> maps, std::size_t self);

}  // namespace tutti
