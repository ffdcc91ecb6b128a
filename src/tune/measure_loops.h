// Measures which loop is the fastest for which pass.
#pragma once

#include "choice/machine.h"
#include "tune/sampler.h"

namespace tutti {

/// Sets the rates of every class of pass, by footprint and loop. Unfinished if the sampler was disturbed.
void measure_loops(Sampler& sampler, LoopRates& rates);

}  // namespace tutti
