// Links of a simulated machine, and the paths of messages over them.
#pragma once

#include <string>
#include <vector>

#include "plan/types.h"

namespace tutti::simulator {

struct Link {
  double bytes_per_ns = 0;  ///< GB/s
  double latency_ns = 0;
};

/// The ranks form `groups` sets of equal size; no more than this rate leaves or enters one set.
struct Cut {
  int groups = 0;
  double bytes_per_ns = 0;
};

/// Immutable. Links have one direction. Endpoints are the ranks, followed by the switches that can sum.
class Topology {
 public:
  virtual ~Topology() = default;
  virtual int ranks() const = 0;
  virtual int endpoints() const { return ranks(); }
  /// Overwrites `path` with the links from one endpoint to another, in order.
  virtual void route(Rank from, Rank to, std::vector<int>& path) const = 0;
  virtual std::string link_name(int link) const = 0;
  virtual std::vector<Cut> cuts() const = 0;
  /// Groups of near ranks, for algorithms that use them.
  virtual std::vector<Level> levels() const { return {}; }

  const std::vector<Link>& links() const { return links_; }

 protected:
  std::vector<Link> links_;
};

/// A tree of switches. `size` children are below each switch, with the ranks below those of the innermost level. Each
/// child has `links` links up and as many down. The rank in that group that sends or receives a message determines its
/// link: number r uses link r modulo `links`.
struct TreeLevel {
  int size = 1;
  double bytes_per_ns = 1;  ///< of a link, in each direction
  /// of a message that goes up to this level and no further; at least that of the level below
  double latency_ns = 0;
  int links = 1;
};

class Tree : public Topology {
 public:
  explicit Tree(std::vector<TreeLevel> levels);  ///< innermost first

  int ranks() const override { return counts_[0]; }
  int endpoints() const override { return endpoints_; }
  void route(Rank from, Rank to, std::vector<int>& path) const override;
  std::string link_name(int link) const override;
  std::vector<Cut> cuts() const override;
  std::vector<Level> levels() const override;

  const std::vector<TreeLevel>& tree_levels() const { return tree_; }
  /// The endpoint that is the switch above child `index` of `level`; the children of level 0 are the ranks.
  Rank switch_above(int level, int index) const;

 private:
  struct Node {
    int level;
    int index;
  };
  Node node_of(Rank endpoint) const;
  int link_of(Node child, Rank end, int direction) const;

  std::vector<TreeLevel> tree_;
  std::vector<int> counts_;       // by level: number of children of all its switches; last: 1, the top
  std::vector<int> first_links_;  // by level
  int endpoints_ = 0;
};

/// A torus of any number of dimensions: a rank has a link to each neighbour, two in every dimension. A message takes
/// the shorter way around in the first dimension, then in the next; upwards if both ways are equal.
class Torus : public Topology {
 public:
  /// `sizes`: in the last dimension, ranks with successive numbers are neighbours.
  Torus(std::vector<int> sizes, Link link);

  int ranks() const override { return ranks_; }
  void route(Rank from, Rank to, std::vector<int>& path) const override;
  std::string link_name(int link) const override;
  std::vector<Cut> cuts() const override;

  const std::vector<int>& sizes() const { return sizes_; }

 private:
  std::vector<int> sizes_;
  std::vector<int> strides_;
  int ranks_ = 1;
};

}  // namespace tutti::simulator
