// What ranks tell each other of ranks to which not all of them have a connection.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"

namespace tutti {

/// A set of ranks, of a bit each, as it travels.
class RankSet {
 public:
  RankSet() = default;
  explicit RankSet(std::span<const std::byte> bytes) : bits_(bytes.begin(), bytes.end()) {}

  /// False: it was there already, or is no rank.
  bool add(int rank);
  bool has(int rank) const;
  std::vector<int> ranks() const;
  std::span<const std::byte> bytes() const { return bits_; }
  static constexpr std::size_t bytes_max = limits::ranks_max / 8 + 1;

 private:
  Bytes bits_;
};

/// A rank that has left, is lost or has failed.
struct GoneRank {
  int rank = 0;
  bool left = false;
  int culprit = -1;        ///< of one that is lost or has failed: the rank at which this began; −1: itself
  std::string words = {};  ///< likewise: why
};

/// All that a rank has heard of ranks that are gone, and what of it is new: for the peers, which have yet to hear it,
/// and for this rank, which has yet to read it. A rank passes all on whenever there is news, so everybody hears, and in
/// as few messages as there are steps between two ranks, however many ranks fail at once.
class Gossip {
 public:
  static constexpr std::size_t words_max = 2047;
  static constexpr std::size_t causes_max = 8;  ///< the last of them stands for later ones, too
  static constexpr std::size_t bytes_max =
      4 + RankSet::bytes_max + 4 + causes_max * (4 + 4 + RankSet::bytes_max + 4 + words_max);

  /// Of what this rank has found. False: it is known.
  bool add(const GoneRank& gone);
  /// Of what a peer has told. False: it is no gossip. Ranks that speak for themselves, at the other end of a
  /// connection, are not to be read here: what they said before they left may be on its way.
  bool merge(std::span<const std::byte> told, const std::function<bool(int rank)>& speaks_for_itself);

  /// All that is known, in one message to the peers; none: nothing is new since the last time.
  std::optional<Bytes> take_message();
  /// What has been told since the last time.
  std::vector<GoneRank> take() { return std::exchange(unread_, {}); }
  /// Of how many ranks the end is known: how many times something was new.
  std::size_t size() const { return size_; }

 private:
  /// Ranks that are gone by the end of one of them.
  struct Cause {
    int culprit = -1;
    std::string words;
    RankSet ranks;
  };
  Cause& cause_of(const GoneRank& gone);

  RankSet left_;
  RankSet gone_;
  std::vector<Cause> causes_;
  std::size_t size_ = 0;
  bool news_ = false;
  std::vector<GoneRank> unread_;
};

}  // namespace tutti
