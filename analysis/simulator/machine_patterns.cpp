// Messages of algorithms for specific machines: a torus, and switches that sum.
#include <bit>
#include <cassert>
#include <map>
#include <utility>

#include "algorithms/butterfly.h"
#include "analysis/simulator/patterns.h"

namespace tutti::simulator {
namespace {

class TorusMessages : public MessageSource {
 public:
  TorusMessages(const Torus& torus, bool swing, double bytes)
      : sizes_(torus.sizes()), ranks_(torus.ranks()), swing_(swing) {
    const int dimensions = static_cast<int>(sizes_.size());
    for (int first = 0; first < dimensions; ++first) orders_.push_back(turns(first));
    share_ = bytes / (2 * dimensions);
  }

  int endpoints() const override { return ranks_; }
  int steps() const override { return 2 * static_cast<int>(orders_[0].size()); }

  void messages_of(int step, std::vector<Message>& messages) override {
    messages.clear();
    const bool gathers = step >= steps() / 2;
    const int halvings = gathers ? steps() - 1 - step : step;
    const double bytes = share_ / (2 << halvings);
    for (Rank rank = 0; rank < ranks_; ++rank)
      for (const std::vector<Turn>& order : orders_)
        for (const bool mirrored : {false, true})
          messages.push_back({.from = rank,
                              .to = partner(rank, order[index(halvings)], mirrored),
                              .step = step,
                              .bytes = bytes,
                              .reduced = gathers ? 0 : bytes});
  }

 private:
  struct Turn {
    int dimension;
    int step;  // within that dimension
  };

  /// Dimensions take turns until each has had all its steps.
  std::vector<Turn> turns(int first) const {
    std::vector<Turn> order;
    const int dimensions = static_cast<int>(sizes_.size());
    int all = 0;
    for (const int size : sizes_) all += std::countr_zero(static_cast<unsigned>(size));
    std::vector<int> done(sizes_.size());
    for (int d = first; static_cast<int>(order.size()) < all; d = (d + 1) % dimensions)
      if (1 << done[index(d)] < sizes_[index(d)]) order.push_back({d, done[index(d)]++});
    return order;
  }

  Rank partner(Rank rank, const Turn& turn, bool mirrored) const {
    const int size = sizes_[index(turn.dimension)];
    int stride = 1;
    for (std::size_t d = index(turn.dimension) + 1; d < sizes_.size(); ++d) stride *= sizes_[d];
    const int c = rank / stride % size;
    if (!swing_) return rank + ((c ^ (1 << turn.step)) - c) * stride;  // its mirror image is the same
    const auto mirror = [size](int i) { return (size - i) % size; };
    const int met = mirrored ? mirror(swing_partner(mirror(c), turn.step, size)) : swing_partner(c, turn.step, size);
    return rank + (met - c) * stride;
  }

  std::vector<int> sizes_;
  int ranks_;
  bool swing_;
  double share_ = 0;
  std::vector<std::vector<Turn>> orders_;
};

/// A chunk goes up one level per step, then down one level per step; chunks are pipelined.
class InSwitchMessages : public MessageSource {
 public:
  InSwitchMessages(const Tree& tree, const InSwitch& how, double bytes) : tree_(tree), how_(how), bytes_(bytes) {
    const int levels = static_cast<int>(tree.tree_levels().size());
    assert(levels == 1 || !how.by_owner);
    for (int level = 0; level < levels; ++level) hops_.push_back({level, true, 1});
    if (how.by_owner) {
      hops_.push_back({0, false, 1.0 / tree.ranks()});
      hops_.push_back({0, true, 1.0 / tree.ranks()});
    }
    for (int level = levels - 1; level >= 0; --level) hops_.push_back({level, false, 1});
  }

  int endpoints() const override { return tree_.endpoints(); }
  int steps() const override { return how_.chunks + static_cast<int>(hops_.size()) - 1; }

  void messages_of(int step, std::vector<Message>& messages) override {
    messages.clear();
    std::map<std::pair<int, bool>, double> shares;  // of a chunk, by level and direction
    for (int hop = 0; hop < static_cast<int>(hops_.size()); ++hop)
      if (step - hop >= 0 && step - hop < how_.chunks) {
        const Hop& h = hops_[index(hop)];
        shares[{h.level, h.up}] += h.share;
      }
    for (const auto& [where, share] : shares) {
      const auto [level, up] = where;
      const double bytes = bytes_ / how_.chunks * share * how_.wire_bytes;
      const Rank first = level == 0 ? 0 : tree_.switch_above(level - 1, 0);
      const int children = tree_.cuts()[index(level)].groups;
      for (int child = 0; child < children; ++child) {
        const Rank below = first + child, above = tree_.switch_above(level, child);
        messages.push_back({.from = up ? below : above, .to = up ? above : below, .step = step, .bytes = bytes});
      }
    }
  }

 private:
  struct Hop {
    int level;
    bool up;
    double share;
  };

  const Tree& tree_;
  InSwitch how_;
  double bytes_;
  std::vector<Hop> hops_;
};

}  // namespace

std::unique_ptr<MessageSource> torus_pattern(const Torus& torus, bool swing, double bytes) {
  for (const int size : torus.sizes()) assert(std::has_single_bit(static_cast<unsigned>(size)));
  return std::make_unique<TorusMessages>(torus, swing, bytes);
}

std::unique_ptr<MessageSource> in_switch_pattern(const Tree& tree, const InSwitch& how, double bytes) {
  return std::make_unique<InSwitchMessages>(tree, how, bytes);
}

}  // namespace tutti::simulator
