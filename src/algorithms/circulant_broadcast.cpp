// Broadcasts the blocks of one rank in the smallest possible number of rounds.
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/skips.h"
#include "algorithms/spread.h"

namespace tutti {
namespace {

/// The blocks that v receives in each round of a phase of ceil(log2 n) rounds, in round k from v - skip[k]. In the
/// first phase, b ≥ 0 is the block it receives, b < 0 means none; each further phase adds ceil(log2 n).
///
/// In each round, b is the last hop, skip[b], of a path from the root that ends no later than the sender, but later
/// than the sender of the round after. No two rounds have the same b.
class ReceiveSchedule {
 public:
  ReceiveSchedule(int n, int v) : skips_(circulant_skips(n)), sought_(n + v), end_(2 * n) {
    std::ranges::reverse(skips_);
    blocks_.resize(skips_.size() - 1);
    taken_.resize(skips_.size());
    const int own = last_hop(v);
    taken_[static_cast<std::size_t>(own)] = true;
    search(0, rounds());
    assert(round_ == rounds());
    for (int& block : blocks_) block = block == rounds() ? own : block - rounds();
  }

  const std::vector<int>& blocks() const { return blocks_; }

 private:
  int rounds() const { return static_cast<int>(blocks_.size()); }
  int skip(int k) const { return skips_[static_cast<std::size_t>(k)]; }
  /// `round` looks for path ends in (after(round), up_to(round)].
  int up_to(int round) const { return sought_ - skip(round); }
  int after(int round) const { return sought_ - skip(round + 1); }

  /// The last hop of the path that always takes the longest skip that fits; rounds() for the root, where none fits.
  int last_hop(int v) const {
    int last = rounds();
    for (int k = rounds() - 1; k >= 0; --k)
      if (skip(k) <= v) v -= skip(k), last = k;
    return last;
  }

  /// Depth-first search: continues paths from `at` by hops of at most skip(longest); finds ends in descending order.
  void search(int at, int longest) {
    for (int hop = longest; hop >= 0 && round_ < rounds(); --hop) {
      const int next = at + skip(hop);
      if (taken_[static_cast<std::size_t>(hop)] || next > up_to(round_) || next >= end_) continue;
      if (next <= after(round_)) search(next, hop);
      if (round_ == rounds() || at > after(round_)) return;
      taken_[static_cast<std::size_t>(hop)] = true;
      end_ = next;
      blocks_[static_cast<std::size_t>(round_++)] = hop;
    }
  }

  std::vector<int> skips_;  // 1, 2, …, n
  int sought_;
  int end_;  // of the last path found
  int round_ = 0;
  std::vector<int> blocks_;
  std::vector<bool> taken_;
};

/// Circulant broadcast: in each round every rank sends one of its blocks `skip` ahead and receives a new one from
/// `skip` behind. A reduce runs the same rounds backwards.
///
///   rounds ceil(log2 n) + blocks - 1, the fewest possible with one port   sent per rank at most bytes·rounds/blocks
///   any n ≥ 2, any root   order of sums: by rank in each addition
///
/// Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast, all-broadcast, reduction and
/// all-reduction", 2024.
Schedule build(const Shape& shape, int blocks) {
  const int n = shape.ranks;
  const std::vector<int> skips = circulant_skips(n);
  const int phase = static_cast<int>(skips.size()) - 1, rounds = phase + blocks - 1;
  // rounds left out at the start, so that the last phase is complete
  const int idle = (phase - rounds % phase) % phase;
  std::vector<std::vector<int>> receives;
  for (int v = 0; v < n; ++v) receives.push_back(ReceiveSchedule(n, v).blocks());

  Spread spread(n, blocks);
  for (int round = idle; round < idle + rounds; ++round, spread.next_step()) {
    const int k = round % phase, skip = skips[static_cast<std::size_t>(phase - k)];
    for (int v = 1; v < n; ++v) {
      const int block = receives[static_cast<std::size_t>(v)][static_cast<std::size_t>(k)] + round - k - idle;
      if (block >= 0) spread.hop((v - skip + n) % n, v, std::min(block, blocks - 1));
    }
  }
  return spread.schedule(shape);
}

constexpr int blocks[] = {8, 1, 16};

}  // namespace

const Family algorithm::circulant_broadcast{.name = "circulant_broadcast",
                                            .supports = supports_any_of<Collective::broadcast, Collective::reduce>,
                                            .build = build,
                                            .carried_by = only_carried<Collective::broadcast>,
                                            .parameter = "blocks",
                                            .values = blocks};

}  // namespace tutti
