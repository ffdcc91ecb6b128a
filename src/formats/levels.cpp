#include "formats/levels.h"

#include <algorithm>
#include <cstddef>

#include "formats/source.h"

namespace tutti::formats {
namespace {

/// Edges, grouped by their start.
class Graph {
 public:
  Graph(int nodes, std::span<const Before> edges) : first_(index(nodes) + 1) {
    for (const Before& edge : edges) ++first_[index(edge.from) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::size_t> at(first_.begin(), first_.end() - 1);
    edges_.resize(edges.size());
    for (const Before& edge : edges) edges_[at[index(edge.from)]++] = edge;
  }
  std::span<const Before> from(int node) const {
    return std::span(edges_).subspan(first_[index(node)], first_[index(node) + 1] - first_[index(node)]);
  }
  int nodes() const { return static_cast<int>(first_.size()) - 1; }

 private:
  std::vector<std::size_t> first_;
  std::vector<Before> edges_;
};

/// Strongly connected components by Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972,
/// with an explicit stack: paths can be as long as files.
class Components {
 public:
  explicit Components(const Graph& graph)
      : graph_(graph), number_(index(graph.nodes()), unseen), low_(number_), of_(number_) {
    for (int node = 0; node < graph.nodes(); ++node)
      if (number_[index(node)] == unseen) search(node);
  }
  int of(int node) const { return of_[index(node)]; }
  /// Nodes, those of a component together, and each component before those that have edges to it.
  const std::vector<int>& sinks_first() const { return order_; }
  int count() const { return count_; }

 private:
  static constexpr int unseen = -1;
  struct Visit {
    int node;
    std::size_t next;  // index of an edge
  };

  void search(int root) {
    enter(root);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      const auto edges = graph_.from(visit.node);
      if (visit.next < edges.size()) {
        const int to = edges[visit.next++].to;
        if (number_[index(to)] == unseen)
          enter(to);
        else if (of_[index(to)] == unseen)
          low_[index(visit.node)] = std::min(low_[index(visit.node)], number_[index(to)]);
        continue;
      }
      const int node = visit.node;
      visits_.pop_back();
      if (!visits_.empty()) {
        int& above = low_[index(visits_.back().node)];
        above = std::min(above, low_[index(node)]);
      }
      if (low_[index(node)] == number_[index(node)]) close(node);
    }
  }
  void enter(int node) {
    number_[index(node)] = low_[index(node)] = clock_++;
    open_.push_back(node);
    visits_.push_back({node, 0});
  }
  void close(int node) {
    for (int member = unseen; member != node;) {
      member = open_.back();
      open_.pop_back();
      of_[index(member)] = count_;
      order_.push_back(member);
    }
    ++count_;
  }

  const Graph& graph_;
  std::vector<int> number_, low_, of_;
  std::vector<int> open_;
  std::vector<int> order_;
  std::vector<Visit> visits_;
  int clock_ = 0;
  int count_ = 0;
};

}  // namespace

Levels levels(int nodes, std::span<const Before> edges) {
  const Graph graph(nodes, edges);
  const Components components(graph);
  Levels result;
  for (const Before& edge : edges)
    if (edge.later && components.of(edge.from) == components.of(edge.to)) {
      result.knot.resize(index(nodes));
      result.knot[index(edge.from)] = 1;
    }
  if (!result.knot.empty()) {
    std::vector<char> knotted(index(components.count()));
    for (int node = 0; node < nodes; ++node)
      if (result.knot[index(node)] != 0) knotted[index(components.of(node))] = 1;
    for (int node = 0; node < nodes; ++node)
      result.knot[index(node)] = knotted[index(components.of(node))] ? components.of(node) + 1 : 0;
    return result;
  }

  std::vector<int> step(index(components.count()));
  const std::vector<int>& order = components.sinks_first();
  for (std::size_t end = order.size(); end > 0; --end) {
    const int from = components.of(order[end - 1]);
    for (const Before& edge : graph.from(order[end - 1])) {
      const int to = components.of(edge.to);
      if (to != from) step[index(to)] = std::max(step[index(to)], step[index(from)] + (edge.later ? 1 : 0));
    }
  }
  result.step.resize(index(nodes));
  for (int node = 0; node < nodes; ++node) result.step[index(node)] = step[index(components.of(node))];
  return result;
}

}  // namespace tutti::formats
