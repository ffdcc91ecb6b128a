// Two binary trees over the same ranks that share the work of inner nodes.
#pragma once

#include <array>

#include "algorithms/spread.h"

namespace tutti {

/// Both have height floor(log2 n). Every rank is a leaf in at least one of them, so in both together it has at most two
/// children: each tree carries half of the data at the full rate of a link. Any n ≥ 1.
///
/// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
/// 2009.
std::array<Tree, 2> double_tree(int n);

}  // namespace tutti
