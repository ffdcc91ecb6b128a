// The common part of broadcasts and reduces: how the chunks of one rank reach all other ranks.
#pragma once

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
  int root() const { return root_; }
  int parent(int v) const { return parents_[static_cast<std::size_t>(v)]; }
  int depth(int v) const { return depths_[static_cast<std::size_t>(v)]; }  ///< edges between v and the root
  int height() const;                                                      ///< the greatest depth
  std::vector<int> children(int v) const;
  const std::vector<int>& at_depth(int depth) const { return at_depth_[static_cast<std::size_t>(depth)]; }

 private:
  std::vector<int> parents_;
  std::vector<int> depths_;
  std::vector<std::vector<int>> at_depth_;
  int root_;
};

/// Hops of chunks, step by step. Ranks are numbered from the root on, cyclically: v = 0 has all chunks from the start.
/// Played forwards, the hops are a broadcast. Played backwards, with a sum for each copy, they are a reduce with as
/// many steps and bytes.
class Spread {
 public:
  Spread(int ranks, int chunks);

  /// `from`, which got `chunk` in an earlier step, passes it to `to`. Does nothing if `to` already has it.
  void hop(int from, int to, int chunk);
  void next_step() { ++step_; }

  /// One step of a pipeline, counted from 0: each rank passes the chunk of the step before on to all its children.
  /// Chunks go down in the order first, first + stride, …
  void pipeline(const Tree& tree, int step, int first = 0, int stride = 1);

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
  int step_ = 0;
  std::vector<Hop> hops_;
  std::vector<int> arrivals_;  // [v * chunks + chunk]: the step that brings it, `never`, or -1 for the root's
};

/// Broadcast or reduce of `chunks` chunks down or up `tree`, which is counted from the root.
Schedule pipelined(const Shape& shape, const Tree& tree, int chunks);

}  // namespace tutti
