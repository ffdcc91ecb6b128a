// Finds out which of the hosts' addresses can be used: every host calls each address of every other host before
// anything depends on it.
//
//   caller → listener   probe    magic, communicator, rank called, from, address, nonce, HMAC("probe", all that)
//   listener → caller   answer   magic, HMAC("answer", probe)
//
// The answer shows that the address leads to the host that announced it, not to another host with the same address
// (every host's docker0 has 172.17.0.1). ConnectionServer accepts probes, as it does all connections from other hosts.
#pragma once

#include <algorithm>
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
#include "net/wire.h"

namespace tutti {

/// An address at which one rank listens.
struct ReachAddress {
  int rank = 0;
  SocketAddress at;
  int nic = 0;   ///< number of the interface among those of its host
  int mbps = 0;  ///< of the interface; 0: not known
};

/// A host as described to the others.
struct ReachHost {
  std::string name;  ///< for messages: "node-b (rank 4)"
  std::vector<ReachAddress> addresses;
};

/// The first message of a call.
struct ReachProbe {
  static constexpr std::size_t bytes = 8 + 8 + 3 * 4 + 16 + sizeof(Digest);
  std::uint64_t communicator = 0;
  int rank = 0;  ///< the rank that is called

  /// From the first bytes, at least as many as a greeting has. Nothing: not a probe. The content is unproven.
  static std::optional<ReachProbe> read(std::span<const std::byte> begun);
};

/// A probe of address number `address` of rank `to`; `from` is of no importance to whoever answers. Errors: system.
Result<Bytes> make_probe(const ConnectionKey& key, std::size_t from, int to, std::size_t address);
inline constexpr std::size_t probe_answer_bytes = 8 + sizeof(Digest);
/// Requires probe_answer_bytes.
bool is_probe_answer(const Secret& secret, std::span<const std::byte> probe, std::span<const std::byte> answer);

/// The answer to a probe that was made with this key. Errors: remote (a different key), system.
Result<Bytes> answer_probe(const ConnectionKey& key, std::span<const std::byte> probe);

/// One host's findings, by host and address. Two bits each: whether the address was reached, and whether it is wide,
/// which means about as fast as the fastest path from here to its host.
class ReachMap {
 public:
  ReachMap() = default;
  explicit ReachMap(std::span<const ReachHost> hosts);

  bool reached(std::size_t host, std::size_t address) const { return paths_[host][address].reached; }
  /// Whether one of its addresses was.
  bool reached(std::size_t host) const { return std::ranges::any_of(paths_[host], &Path::reached); }
  bool wide(std::size_t host, std::size_t address) const { return paths_[host][address].wide; }
  void set(std::size_t host, std::size_t address) { paths_[host][address].reached = true; }
  void set_wide(std::size_t host, std::size_t address) { paths_[host][address].wide = true; }

  /// In the order of the hosts.
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

/// The calling side of one host: a state machine that calls every address of every other host. If a listener with too
/// many callers closes a connection without an answer, it calls again for a while.
class ReachProof {
 public:
  /// `at_once`: limit of calls that have just begun.
  ReachProof(System& system, const ConnectionKey& key, std::size_t self, std::vector<ReachHost> hosts,
             std::size_t at_once = 64);

  /// True when all calls are answered or given up. Never fails: an address that cannot be reached counts as not
  /// reached, and `why` gives the reason.
  bool advance();
  std::int64_t poll_set(std::vector<PollItem>& items) const;

  /// Why this process could not call, if it had no descriptor for it: that says nothing of the address.
  const std::optional<Error>& lacked() const { return lacked_; }
  /// Valid after advance() has returned true. This host's own addresses count as reached.
  const ReachMap& map() const { return map_; }
  /// "node-b (rank 4) at 10.0.0.3 port 4711: connection refused" for each address that was not reached; for the log.
  const std::vector<std::string>& why() const { return why_; }

 private:
  struct AddressIndex {
    std::size_t host;
    std::size_t address;
  };
  struct Call {
    AddressIndex place;
    Wire wire;
    Bytes probe;
    std::int64_t first_ns = 0;  ///< start of the first try
    std::int64_t tried_ns = 0;  ///< start of this try
    std::int64_t begin_ns = 0;  ///< when to call again; 0: a try is under way
    int tries = 0;
  };
  bool may_call() const;
  void call_some();
  bool begin(Call& call);
  bool serve(Call& call);
  bool is_late(const Call& call) const;
  bool cut_off(Call& call, const Error& error);
  void fail(const AddressIndex& place, const std::string& reason);
  int rate_of(const Call& call);
  void find_wide();

  System& system_;
  ConnectionKey key_;
  std::size_t self_;
  std::vector<ReachHost> hosts_;
  std::size_t at_once_;
  ReachMap map_;
  std::vector<std::vector<int>> rates_;  // by host and address: Mbit/s, for those reached
  std::deque<AddressIndex> to_call_;
  std::vector<Call> calls_;
  std::vector<std::string> why_;
  std::optional<Error> lacked_;
};

/// The addresses of each host that the host `self` may use, in their order: those that all hosts have reached; for a
/// host without any such address, those that `self` has reached. Takes the maps of all hosts, by number. Errors: system
/// (a host reaches none of another host's addresses; names both hosts and the addresses), remote (a map is missing).
/// Whether there is an error does not depend on `self`.
Result<std::vector<std::vector<std::size_t>>> usable_addresses(std::span<const ReachHost> hosts,
                                                               std::span<const ReachMap> maps, std::size_t self);

}  // namespace tutti
