// Which ranks have joined the bootstrap, and which have contributed to the exchange under way. No sockets here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {

/// Connections that never became a rank.
class Refusals {
 public:
  void add(const std::string& host);
  /// A connection that ended, or had its time, without a word: also of a rank that got no core in time and called
  /// again.
  void add_silent() { ++silent_; }
  /// A process at `host` claimed to be `rank` and did not prove it; `what` happened instead. Kept for a few ranks only:
  /// any process can make such a claim.
  void add_claim(int rank, const std::string& host, std::string_view what);

  /// "10.0.0.9: wrong id", "10.0.0.9: hung up while greeting", or "never seen".
  std::string words_for(int rank) const;
  /// "Refused so far: 214 connections without a valid greeting, the last from 10.0.9.4.", and how many said
  /// nothing, or "". `elsewhere`: more with a greeting.
  std::string words(std::uint64_t elsewhere = 0) const;
  /// Without silent ones.
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t silent_ = 0;
  std::string last_host_;
  std::map<int, std::string> claims_;
};

/// An error of any function means that the start has failed for all ranks.
class Roster {
 public:
  explicit Roster(std::size_t blob_bytes_max) : blob_bytes_max_(blob_bytes_max) {}

  /// Text added to the error about a rank that is already taken.
  void advise(const std::string& advice) { advice_ = advice; }

  /// Errors: invalid_usage (rank taken or out of range; ranks, version, code or settings unlike the first rank's).
  Result<void> admit(const Bootstrap::Who& who, std::int64_t now_ns);
  /// Requires an admitted rank. Errors: remote (out of turn, or a rank has left and cannot take part).
  Result<void> contribute(int rank, Contribution contribution, std::int64_t now_ns);
  /// Requires an admitted rank, which sends all its frames by way of `parent`; −1: directly.
  void hang(int rank, int parent) { entries_[index(rank)].parent = parent; }
  /// Requires an admitted rank. `said_so`: it said goodbye, which a rank that has the last answer may do. Errors:
  /// remote if another rank waits for it, or if it was lost.
  Result<void> leave(int rank, const std::string& reason, bool said_so);

  /// 0 before the first rank has come.
  int ranks() const { return static_cast<int>(entries_.size()); }
  bool admitted(int rank) const { return rank >= 0 && rank < ranks() && entries_[index(rank)].who.has_value(); }
  bool all_here() const { return ranks() > 0 && here_ == ranks(); }
  /// "rank 3 (pid 12 on node-b)"; requires an admitted rank.
  std::string words_for(int rank) const;

  /// "pid 12 on node-b"; requires an admitted rank.
  const std::string& process_of(int rank) const { return entries_[index(rank)].who->process; }

  /// A rank has been waiting for others since `waiting_since_ns`.
  bool waiting() const { return round_ == 0 ? here_ > 0 : contributed_ > 0; }
  std::int64_t waiting_since_ns() const { return waiting_since_ns_; }
  /// The time at which the first of all ranks gives up, in any exchange; nothing while no rank has sent a limit.
  std::optional<std::int64_t> give_up_ns() const { return give_up_ns_; }
  /// "init: 6 of 8 ranks after 10 s; missing 3 (never seen), 5 (10.0.0.9: wrong id)"; `peer` is set if exactly one rank
  /// is missing. Ranks that cannot be heard because a rank above them is silent are "behind rank 3" and do not count
  /// for `peer`.
  Error missing(const Refusals& refusals, std::int64_t now_ns) const;

  bool round_complete() const { return ranks() > 0 && contributed_ == ranks(); }
  /// The body of the answer to all ranks; begins the next round. Requires a complete round.
  Bytes take_gathered();

 private:
  struct Entry {
    std::optional<Bootstrap::Who> who;
    std::optional<Blob> blob;
    std::string gone;  ///< the reason; empty: still here
    int parent = -1;
  };
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::string absence(int rank, const Refusals& refusals) const;
  bool behind_another(int rank) const;
  Result<void> check_agrees(const Bootstrap::Who& who) const;

  std::size_t blob_bytes_max_;
  std::string advice_;
  std::vector<Entry> entries_;
  int first_rank_ = 0;  ///< the rank that others are compared with
  int here_ = 0;
  int contributed_ = 0;
  std::uint32_t round_ = 0;
  std::int64_t waiting_since_ns_ = 0;
  std::optional<std::int64_t> give_up_ns_;
};

/// The difference between two texts of settings, "TUTTI_X=1 …": "rank 5 has TUTTI_ALGO=ring, rank 0 has none".
std::string settings_difference(const Bootstrap::Who& a, const Bootstrap::Who& b);

}  // namespace tutti::bootstrap
