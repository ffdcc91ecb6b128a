#include "analysis/simulator/bound.h"

#include <algorithm>

namespace tutti::simulator {
namespace {

/// Bytes of the call that must cross the border of one of `groups` groups, the busiest one.
double crossing(Collective collective, int ranks, int groups) {
  if (groups < 2) return 0;
  const double others = (groups - 1.0) / groups;
  switch (collective) {
    case Collective::all_reduce: return 2 * others;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter: return others;
    case Collective::all_to_all: return others * ranks / groups;
    case Collective::broadcast:
    case Collective::reduce: return 1;
    // The group of the last rank needs what the other groups have, combined.
    case Collective::scan:
    case Collective::ex_scan: return 1;
    case Collective::barrier: return 0;
  }
  return 0;
}

}  // namespace

double least_time_ns(Collective collective, int ranks, double bytes, std::span<const Cut> cuts) {
  double least = 0;
  for (const Cut& cut : cuts)
    least = std::max(least, crossing(collective, ranks, cut.groups) * bytes / cut.bytes_per_ns);
  return least;
}

double bus_factor(Collective collective, int ranks) {
  return crossing(collective, ranks, ranks);
}

}  // namespace tutti::simulator
