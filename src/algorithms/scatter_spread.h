// A broadcast that first deals the data out, then gathers it everywhere; a reduce by the same way back.
#pragma once

#include "plan/schedule.h"

namespace tutti {

/// Of n chunks, chunk v goes down a binomial tree to v; then all go around a ring. Nothing is sent to who has it.
Schedule scatter_then_ring(const Shape& shape);

/// The same with an all-gather in ceil(log2 n) steps, on the circulant graph.
Schedule scatter_then_circulant(const Shape& shape);

}  // namespace tutti
