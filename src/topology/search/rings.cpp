#include "topology/search/rings.h"

#include <algorithm>
#include <cstdint>

namespace tutti::topology {
namespace {

using Matrix = std::vector<std::vector<long long>>;
using Order = std::vector<int>;

/// Pseudorandom numbers that are equal in every run: the search tries alternatives reproducibly.
class Dice {
 public:
  std::uint32_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((state_ >> 33) % bound);
  }

 private:
  std::uint64_t state_ = 20251;
};

class Packer {
 public:
  Packer(const Capacity& capacity, int share) : left_(capacity.links), count_(static_cast<std::size_t>(capacity.gpus)) {
    for (auto& row : left_)
      for (long long& links : row) links *= share;
  }

  /// Adds rings, and removes some to try others, until there are `enough` or the budget of tries is used up.
  std::vector<Order> pack(std::size_t enough) {
    while (rings_.size() < enough && add(steps_first)) {
    }
    constexpr int tries = 600;
    for (int attempt = 0; attempt < tries && budget_ > 0 && !rings_.empty() && rings_.size() < enough; ++attempt) {
      const Matrix left = left_;
      const std::vector<Order> rings = rings_;
      const std::size_t out = std::min<std::size_t>(rings_.size(), 1 + dice_.below(3));
      for (std::size_t i = 0; i < out; ++i) {
        const std::size_t which = dice_.below(rings_.size());
        book(rings_[which], 1);
        rings_.erase(rings_.begin() + static_cast<std::ptrdiff_t>(which));
      }
      while (rings_.size() < enough && add(steps_again)) {
      }
      if (rings_.size() < rings.size()) left_ = left, rings_ = rings;
    }
    return rings_;
  }

 private:
  static constexpr int steps_first = 100000, steps_again = 3000, steps_all = 500000;

  void book(const Order& ring, long long by) {
    for (std::size_t at = 0; at < ring.size(); ++at)
      left_[static_cast<std::size_t>(ring[at])][static_cast<std::size_t>(ring[(at + 1) % ring.size()])] += by;
  }

  bool add(int steps) {
    Order ring{0};
    std::vector<bool> used(count_, false);
    used[0] = true;
    if (!extend(ring, used, steps)) return false;
    book(ring, -1);
    rings_.push_back(std::move(ring));
    return true;
  }

  /// Depth first. GPUs with the fewest remaining links come first, because they have the least choice later.
  bool extend(Order& ring, std::vector<bool>& used, int& steps) {
    const auto& row = left_[static_cast<std::size_t>(ring.back())];
    if (ring.size() == count_) return row[0] > 0;
    if (--steps < 0 || --budget_ < 0) return false;
    std::vector<std::pair<long long, std::size_t>> next;
    for (std::size_t to = 0; to < count_; ++to) {
      if (used[to] || row[to] <= 0) continue;
      long long ways = 0;
      for (std::size_t from = 0; from < count_; ++from)
        if (!used[from] && from != to) ways += left_[from][to];
      next.emplace_back((ways - row[to]) * 16 + dice_.below(24), to);
    }
    std::ranges::sort(next);
    for (const auto& [rank, to] : next) {
      ring.push_back(static_cast<int>(to));
      used[to] = true;
      if (extend(ring, used, steps)) return true;
      ring.pop_back();
      used[to] = false;
    }
    return false;
  }

  Matrix left_;
  std::size_t count_;
  std::vector<Order> rings_;
  Dice dice_;
  int budget_ = steps_all;  // some tenths of a second for 16 GPUs
};

}  // namespace

Rings pack_rings(const Capacity& capacity) {
  Rings rings;
  if (capacity.gpus < 2) return rings;
  const auto count = static_cast<std::size_t>(capacity.gpus);
  Capacity direct = capacity;
  if (capacity.links.size() > count) {  // the links that all have to the switches serve rings in any order
    long long shared = capacity.links.back()[0];
    for (std::size_t gpu = 0; gpu < count; ++gpu) shared = std::min(shared, capacity.links.back()[gpu]);
    Order order;
    for (int gpu = 0; gpu < capacity.gpus; ++gpu) order.push_back(gpu);
    rings.orders.assign(static_cast<std::size_t>(shared), order);
    direct.links.resize(count);
    for (auto& row : direct.links) row.resize(count);
  }
  const auto bound = static_cast<std::size_t>(least_cut(direct));
  if (bound == 0) return rings;
  std::vector<Order> whole = Packer(direct, 1).pack(bound);
  if (whole.size() < bound && !whole.empty()) {
    std::vector<Order> halves = Packer(direct, 2).pack(2 * bound);
    if (halves.size() > 2 * whole.size()) {
      const std::size_t through_switches = rings.orders.size();
      for (std::size_t i = 0; i < through_switches; ++i) rings.orders.push_back(rings.orders.front());
      rings.share = 2;
      whole = std::move(halves);
    }
  }
  rings.orders.insert(rings.orders.end(), whole.begin(), whole.end());
  return rings;
}

}  // namespace tutti::topology
