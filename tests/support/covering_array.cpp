#include "support/covering_array.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace tutti::testing {
namespace {

/// The pairs still to be covered.
class Pairs {
 public:
  explicit Pairs(const std::vector<int>& levels) : levels_(levels) {
    offset_.push_back(0);
    for (const int level : levels) offset_.push_back(offset_.back() + level);
    const auto values = static_cast<std::size_t>(offset_.back());
    open_.assign(values * values, false);
    for (int a = 0; a < dimensions(); ++a)
      for (int b = a + 1; b < dimensions(); ++b)
        for (int x = 0; x < levels_[a]; ++x)
          for (int y = 0; y < levels_[b]; ++y) set(a, x, b, y, true);
  }

  int dimensions() const { return static_cast<int>(levels_.size()); }
  void set(int a, int x, int b, int y, bool open) {
    at(a, x, b, y) = open;
    at(b, y, a, x) = open;
  }
  bool open(int a, int x, int b, int y) { return at(a, x, b, y); }

  /// How many pairs of value `x` of dimension `a` with the values chosen so far would be new.
  int gain(const Row& row, int a, int x) {
    int gained = 0;
    for (int b = 0; b < dimensions(); ++b)
      if (b != a && row[b] >= 0) gained += open(a, x, b, row[b]) ? 1 : 0;
    return gained;
  }

  void cover(const Row& row) {
    for (int a = 0; a < dimensions(); ++a)
      for (int b = a + 1; b < dimensions(); ++b) set(a, row[a], b, row[b], false);
  }

  /// A row with one open pair in it, the others −1; empty when all are covered.
  Row next() {
    for (; at_ < open_.size(); ++at_) {
      if (!open_[at_]) continue;
      const auto values = static_cast<std::size_t>(offset_.back());
      Row row(levels_.size(), -1);
      for (const std::size_t value : {at_ / values, at_ % values}) {
        const auto above = std::ranges::upper_bound(offset_, static_cast<int>(value));
        const auto dimension = above - offset_.begin() - 1;
        row[dimension] = static_cast<int>(value) - offset_[dimension];
      }
      return row;
    }
    return {};
  }
  void skip() { open_[at_] = false; }

 private:
  std::vector<bool>::reference at(int a, int x, int b, int y) {
    return open_[static_cast<std::size_t>(offset_[a] + x) * static_cast<std::size_t>(offset_.back()) +
                 static_cast<std::size_t>(offset_[b] + y)];
  }

  std::vector<int> levels_;
  std::vector<int> offset_;
  std::vector<bool> open_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Row> covering_array(const std::vector<int>& levels, std::uint64_t seed,
                                const std::function<bool(const Row&)>& allowed) {
  std::mt19937_64 random(seed);
  Pairs pairs(levels);
  std::vector<Row> rows;
  std::vector<int> order(levels.size());
  std::iota(order.begin(), order.end(), 0);
  for (Row row = pairs.next(); !row.empty(); row = pairs.next()) {
    if (!allowed(row)) {
      pairs.skip();
      continue;
    }
    std::ranges::shuffle(order, random);
    for (const int dimension : order) {
      if (row[dimension] >= 0) continue;
      int best = -1;
      int best_gain = -1;
      const int start = static_cast<int>(random() % static_cast<std::uint64_t>(levels[dimension]));
      for (int i = 0; i < levels[dimension]; ++i) {
        const int value = (start + i) % levels[dimension];
        const int gain = pairs.gain(row, dimension, value);
        if (gain <= best_gain) continue;
        row[dimension] = value;
        if (!allowed(row)) continue;
        best = value;
        best_gain = gain;
      }
      row[dimension] = best;
      if (best < 0)
        throw std::logic_error("`allowed` says of a row with open places that there is a choice, and there is none");
    }
    pairs.cover(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tutti::testing
