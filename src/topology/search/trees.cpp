// Spanning trees of all roots on the links of a mesh.
#include <algorithm>

#include "topology/search/rings.h"

namespace tutti::topology {
namespace {

constexpr int gpus_max = 64;

class Packer {
 public:
  Packer(const Capacity& capacity, Ratio bound) : left_(capacity.links), count_(capacity.links.size()) {
    for (auto& row : left_)
      for (long long& links : row) links *= bound.denominator;
    for (std::size_t root = 0; root < count_; ++root) {
      Tree tree{static_cast<int>(root), bound.numerator, std::vector<int>(count_, -1)};
      growing_.push_back({std::move(tree), {root}});
    }
  }

  /// Nothing if no edge is found, which the theorem rules out.
  std::vector<Tree> pack() {
    std::vector<Tree> done;
    while (!growing_.empty()) {
      if (growing_.back().nodes.size() == count_) {
        done.push_back(std::move(growing_.back().tree));
        growing_.pop_back();
      } else if (!grow()) {
        return {};
      }
    }
    return done;
  }

 private:
  struct Growing {
    Tree tree;
    std::vector<std::size_t> nodes;
  };

  /// How much of the edge the last tree may take so that all other trees can still be completed: a flow from `from` to
  /// `to` in which every other tree is a path from `from` to the nodes it has reached.
  long long spare(std::size_t from, std::size_t to) const {
    const std::size_t others = growing_.size() - 1;
    auto graph = left_;
    for (auto& row : graph) row.resize(count_ + others, 0);
    graph.resize(count_ + others, std::vector<long long>(count_ + others, 0));
    long long sum = 0;
    for (std::size_t other = 0; other < others; ++other) {
      const Growing& growing = growing_[other];
      if (growing.nodes.size() == count_) continue;
      sum += growing.tree.units;
      graph[from][count_ + other] = growing.tree.units;
      for (const std::size_t node : growing.nodes) graph[count_ + other][node] = growing.tree.units;
    }
    const long long wanted = std::min(left_[from][to], growing_.back().tree.units);
    return max_flow(std::move(graph), static_cast<int>(from), static_cast<int>(to), sum + wanted) - sum;
  }

  bool grow() {
    const std::vector<std::size_t> nodes = growing_.back().nodes;
    for (const std::size_t from : nodes)
      for (std::size_t to = 0; to < count_; ++to) {
        if (left_[from][to] <= 0 || std::ranges::count(nodes, to) > 0) continue;
        const long long units = std::min({left_[from][to], growing_.back().tree.units, spare(from, to)});
        if (units <= 0) continue;
        if (units < growing_.back().tree.units) {  // the rest of it grows differently
          Growing rest = growing_.back();
          rest.tree.units -= units;
          growing_.insert(growing_.end() - 1, std::move(rest));
        }
        Growing& growing = growing_.back();
        growing.tree.units = units;
        growing.tree.parent[to] = static_cast<int>(from);
        growing.nodes.push_back(to);
        left_[from][to] -= units;
        return true;
      }
    return false;
  }

  std::vector<std::vector<long long>> left_;
  std::size_t count_;
  std::vector<Growing> growing_;
};

}  // namespace

Trees pack_trees(const Capacity& capacity) {
  Trees packed;
  if (capacity.size() != capacity.gpus || capacity.gpus < 2 || capacity.gpus > gpus_max) return packed;
  const Ratio bound = gather_bound(capacity);
  if (bound.numerator == 0) return packed;
  packed.share = bound.denominator;
  packed.trees = Packer(capacity, bound).pack();
  return packed;
}

}  // namespace tutti::topology
