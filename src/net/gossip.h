// What ranks tell each other of ranks to which not all of them have a connection.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"

namespace tutti {

/// A set of ranks, of a bit each, as it travels.
class RankSet {
 public:
  /// False: it was there already, or is no rank.
  bool add(int rank);
  bool has(int rank) const;
  std::vector<int> ranks() const;
  std::span<const std::byte> bytes() const { return bits_; }
  static RankSet of(std::span<const std::byte> bytes) { return RankSet(Bytes(bytes.begin(), bytes.end())); }
  static constexpr std::size_t bytes_max = limits::ranks_max / 8 + 1;

  RankSet() = default;

 private:
  explicit RankSet(Bytes bits) : bits_(std::move(bits)) {}
  Bytes bits_;
};

/// A rank that has left, is lost or has failed.
struct GoneRank {
  int rank = 0;
  bool left = false;
  int culprit = -1;        ///< of one that is lost or has failed: the rank at which this began; −1: itself
  std::string words = {};  ///< likewise: why
};

/// All that a rank has heard. It passes this on whenever there is news, so everybody hears, and in as few messages as
/// there are steps between two ranks, however many ranks fail at once.
class Gossip {
 public:
  static constexpr std::size_t words_max = 2047;
  static constexpr std::size_t causes_max = 8;  ///< the last of them stands for later ones, too
  static constexpr std::size_t bytes_max =
      4 + RankSet::bytes_max + 4 + causes_max * (4 + 4 + RankSet::bytes_max + 4 + words_max);

  /// False: that is known.
  bool add(const GoneRank& gone);
  /// Adds what another rank has heard; returns what of it is new.
  std::vector<GoneRank> merge(const Gossip& other);

  /// How many times something was new.
  std::size_t size() const { return size_; }

  Bytes write() const;
  /// Empty: it is none.
  static std::optional<Gossip> read(std::span<const std::byte> bytes);

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
};

}  // namespace tutti
