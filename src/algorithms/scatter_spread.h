// A broadcast that first scatters the data, then gathers it on all ranks; a reduce runs the same steps backwards.
#pragma once

#include "plan/schedule.h"

namespace tutti {

/// Of n chunks, chunk v goes down a binomial tree to v; then all go around a ring. A rank never receives a chunk that
/// it already has.
Schedule scatter_then_ring(const Shape& shape);

/// As above, with an all-gather in ceil(log2 n) steps on the circulant graph.
Schedule scatter_then_circulant(const Shape& shape);

}  // namespace tutti
