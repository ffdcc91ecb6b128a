// Messages of algorithms in which all ranks behave alike, without a schedule: a few numbers per step.
#pragma once

#include <memory>
#include <string_view>

#include "analysis/simulator/messages.h"
#include "analysis/simulator/topology.h"

namespace tutti::simulator {

/// The same messages as those of the algorithm's schedule, for any number of ranks; nullptr if the algorithm has only a
/// schedule. `bytes`: as in messages_of. For the families ring, circulant, dissemination, pairwise, recursive_doubling,
/// halving_doubling, swing, swing_latency and bine, the last five for powers of two.
std::unique_ptr<MessageSource> pattern(std::string_view algorithm, const Shape& shape, double bytes);

/// All-reduce on a torus whose sizes are powers of two: steps alternate between the dimensions. There are twice as many
/// all-reduces as dimensions, each of its share of the vector, which begin in different dimensions and directions, so
/// that all links of a rank are busy. `swing`: partners as in algorithm::swing; else at distances 1, 2, 4, … De Sensi,
/// Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", NSDI 2024.
std::unique_ptr<MessageSource> torus_pattern(const Torus& torus, bool swing, double bytes);

/// All-reduce in which switches sum, in `chunks` that are pipelined. Ranks send all of the vector up and receive all of
/// the sum from the top switch. `by_owner`, for one level: ranks fetch the sums of the p-th parts and send them to all
/// through the switch, so that links carry (1 + 1/p) of the vector (NVLS). `wire_bytes`: bytes on a link per byte of
/// data. Each child has one link to its switch. Graham et al., "Scalable hierarchical aggregation protocol (SHARP)",
/// COMHPC 2016.
struct InSwitch {
  int chunks = 64;
  bool by_owner = false;
  double wire_bytes = 1;
};
std::unique_ptr<MessageSource> in_switch_pattern(const Tree& tree, const InSwitch& how, double bytes);

}  // namespace tutti::simulator
