// The cores of ranks that take turns on them, in a prediction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "choice/conditions.h"

namespace tutti {

/// Cores are dealt to ranks in turn, host after host, so that a prediction does not depend on how the ranks of hosts
/// are numbered.
class Cores {
 public:
  struct Core {
    double now = 0;
    Rank rank = -1;  ///< whose turn it is
  };

  Cores(std::size_t ranks, const Conditions& conditions)
      : cores_(std::min(ranks, static_cast<std::size_t>(std::max(conditions.cores, 1)))), index_(ranks) {
    std::vector<std::size_t> sequence(ranks);
    std::iota(sequence.begin(), sequence.end(), 0);
    if (!conditions.hosts.empty())
      std::ranges::stable_sort(sequence, {}, [&](std::size_t rank) { return conditions.hosts[rank]; });
    for (std::size_t i = 0; i < ranks; ++i) index_[sequence[i]] = i % cores_.size();
  }

  Core& of(Rank rank) { return cores_[index_[static_cast<std::size_t>(rank)]]; }
  std::vector<Core>& all() { return cores_; }
  std::size_t count() const { return cores_.size(); }

  /// The time that the busiest core takes; `prices`: of each rank's passes.
  double busiest(const std::vector<std::vector<double>>& prices) const {
    std::vector<double> us(cores_.size());
    for (std::size_t rank = 0; rank < prices.size(); ++rank)
      us[index_[rank]] += std::accumulate(prices[rank].begin(), prices[rank].end(), 0.0);
    return *std::ranges::max_element(us);
  }

 private:
  std::vector<Core> cores_;
  std::vector<std::size_t> index_;  // by rank
};

}  // namespace tutti
