// The common part of all rings: data travels from neighbour to neighbour, in one or several orders of the ranks at
// once.
#pragma once

#include <span>
#include <vector>

#include "plan/schedule.h"

namespace tutti {

/// The ranks along a ring; the last one's neighbour is the first.
using RingOrder = std::vector<Rank>;

/// start, start + stride, … cyclically; `stride` has no common divisor with `ranks`.
RingOrder ring_order(int ranks, int stride);

/// All-reduce, reduce-scatter or all-gather along several rings at once; each carries an equal share of the data.
///
///   all-reduce                    steps 2(n-1)   sent per rank and ring 2·bytes/rings·(n-1)/n
///   reduce-scatter, all-gather    steps n-1      sent per rank and ring bytes/rings·(n-1)/n
Schedule along_rings(const Shape& shape, std::span<const RingOrder> rings);

}  // namespace tutti
