// By which paths this rank's calls went, for its peers to see, and whether theirs went otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "call/request.h"
#include "plan/types.h"

namespace tutti {

/// How a rank carries out its last collectives, for its peers: by synchronising kernels, or by the host. A kernel that
/// waits for a rank whose call goes through the host would wait for ever, and so would that call.
///
/// In memory that all ranks share, zero at first. Written by the rank's own calls, one after another.
class PathHistory {
 public:
  /// The rank makes its next collective.
  void add(bool by_host) {
    const std::uint64_t known = word_.load(std::memory_order_relaxed);
    const auto calls = static_cast<std::uint32_t>(known) + 1;
    const std::uint64_t bit = std::uint64_t{1} << (32 + calls % remembered);
    const std::uint64_t paths = known & ~std::uint64_t{0xffff'ffff};
    word_.store((by_host ? paths | bit : paths & ~bit) | calls, std::memory_order_release);
  }
  /// The rank has captured a call: replays are not counted, so its numbers say nothing any more.
  void stop() { stopped_.store(1, std::memory_order_release); }

  /// A collective that both ranks have made, by number, by different paths.
  static std::optional<std::uint32_t> difference(const PathHistory& a, const PathHistory& b) {
    const std::uint64_t own = a.word_.load(std::memory_order_acquire), theirs = b.word_.load(std::memory_order_acquire);
    if (a.stopped_.load(std::memory_order_acquire) != 0 || b.stopped_.load(std::memory_order_acquire) != 0)
      return std::nullopt;
    const auto first = static_cast<std::uint32_t>(own), second = static_cast<std::uint32_t>(theirs);
    const std::uint32_t both = std::min(first, second), most = std::max(first, second);
    for (std::uint32_t call = both; call > 0 && call + remembered > most; --call)
      if (((own ^ theirs) >> (32 + call % remembered) & 1) != 0) return call;
    return std::nullopt;
  }
  bool by_host(std::uint32_t call) const { return (word_.load() >> (32 + call % remembered) & 1) != 0; }

 private:
  static constexpr std::uint32_t remembered = 32;

  std::atomic<std::uint64_t> word_;  ///< number of calls, and above it a bit for each of the last ones
  std::atomic<std::uint32_t> stopped_;
};

/// How a rank carries out its last messages to and from each peer: by kernels, or by the host. Like PathHistory.
struct MessagePathHistory {
  static constexpr std::size_t ranks_max = 64;  ///< device::ranks_max
  PathHistory sent[ranks_max];
  PathHistory received[ranks_max];

  PathHistory& of(bool send, Rank peer) { return (send ? sent : received)[static_cast<std::size_t>(peer)]; }
};

/// Notes and compares nothing without histories: then no kernel waits for one of another launch.
class PathComparison {
 public:
  /// `rank`: this one.
  explicit PathComparison(Rank rank) : rank_(rank) {}
  /// The histories lie in memory that all ranks share; by rank.
  void compare(std::vector<PathHistory*> calls, std::vector<MessagePathHistory*> messages) {
    calls_ = std::move(calls);
    messages_ = std::move(messages);
  }

  Rank rank() const { return rank_; }

  /// A collective of this rank is queued as a kernel, in a capture or not.
  void note_kernel(bool captured);
  /// A collective of this rank is carried out by the host.
  void note_host() {
    if (!calls_.empty()) calls_[static_cast<std::size_t>(rank_)]->add(/*by_host=*/true);
  }
  /// A send or receive of this rank is queued.
  void note_message(const PeerRequest& request, bool by_host);
  /// It is captured, so nobody knows how often it is made.
  void note_captured(const PeerRequest& request);

  /// A call or message that this rank and a peer have made by different paths: invalid_usage.
  std::optional<Error> difference() const;

 private:
  std::optional<Error> of_messages(Rank peer, bool send) const;
  std::optional<Error> of_calls(Rank peer) const;

  const Rank rank_;
  std::vector<PathHistory*> calls_;
  std::vector<MessagePathHistory*> messages_;
};

}  // namespace tutti
