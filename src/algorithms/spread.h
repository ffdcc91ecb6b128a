// The common part of broadcasts and reduces: how the chunks of one rank reach all other ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// A tree over 0 … n-1, given by its parents.
class Tree {
 public:
  static constexpr int none = -1;

  /// `parents`: by rank; none for the root, of which there is exactly one.
  explicit Tree(std::vector<int> parents);

  int size() const { return static_cast<int>(parents_.size()); }
  int parent(int v) const { return parents_[static_cast<std::size_t>(v)]; }
  int depth(int v) const { return depths_[static_cast<std::size_t>(v)]; }  ///< edges between v and the root
  int height() const { return std::ranges::max(depths_); }                 ///< the greatest depth
  std::vector<int> sizes() const;                                          ///< by rank: how many ranks its subtree has
  /// All nodes with a parent, or, unless `v` is none, those whose edge to the parent is an edge of `v`.
  std::vector<int> nodes_near(int v) const;

 private:
  std::vector<int> parents_;
  std::vector<int> depths_;
};

/// Two binary trees over the same ranks that share the work of inner nodes. Both have height floor(log2 n). Every rank
/// is a leaf in at least one of them, so in both together it has at most two children: each tree carries half of the
/// data at the full rate of a link. Any n ≥ 1.
///
/// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
/// 2009.
std::array<Tree, 2> double_tree(int n);

/// Hops of chunks, step by step. Ranks are numbered from the root on, cyclically: v = 0 has all chunks from the start.
/// Played forwards, the hops are a broadcast. Played backwards, with a sum for each copy, they are a reduce with as
/// many steps and bytes.
class Spread {
 public:
  Spread(int ranks, int chunks);
  /// Of hops none of which passes on what `to` already has, counted from the root of `shape`: where the shape is about
  /// one rank, only its hops are kept; for a reduce all of them, as it is they that tell what a sum holds.
  static Spread of_new_chunks(const Shape& shape, int chunks);

  /// `from`, which got `chunk` in an earlier step, passes it to `to`. Does nothing if `to` already has it.
  void hop(int from, int to, int chunk);
  void next_step() { ++step_; }

  /// For broadcast and reduce. `rank_of`: the rank of each v; empty: `v` ranks after the root.
  Schedule schedule(const Shape& shape, std::span<const Rank> rank_of = {}) const;

 private:
  struct Hop {
    int step;
    int from;
    int to;
    int chunk;
  };
  int& arrival(int v, int chunk);

  int ranks_;
  int chunks_;
  int only_ = Shape::everybody;  ///< counted from the root
  bool keeps_all_ = true;
  int step_ = 0;
  int steps_ = 0;       ///< that have hops
  int last_step_ = -1;  ///< that has hops
  std::vector<Hop> hops_;
  std::vector<int> arrivals_;  // [v * chunks + chunk]: the step that brings it, `never`, or -1 for the root's
};

/// Chunks that go down a tree, or up in a reduce, in the order first, first + stride, …: in each step a rank passes the
/// chunk of the step before on to all its children. Nodes are counted from the root of the call on, cyclically.
struct Pipeline {
  const Tree* tree = nullptr;
  int first = 0;
  int stride = 1;
};

/// Broadcast or reduce of `chunks` chunks, each of which has to be in one of the pipelines.
Schedule pipelined(const Shape& shape, std::span<const Pipeline> pipelines, int chunks);

/// A broadcast that first scatters the data, then gathers it on all ranks; a reduce runs the same steps backwards. Of n
/// chunks, chunk v goes down a binomial tree to v; then all go around a ring. A rank never receives a chunk that it
/// already has.
Schedule scatter_then_ring(const Shape& shape, int parameter);
/// As above, with an all-gather in ceil(log2 n) steps on the circulant graph.
Schedule scatter_then_circulant(const Shape& shape, int parameter);

}  // namespace tutti
