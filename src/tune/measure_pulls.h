// Measures how fast memory of another process is copied (CMA).
#pragma once

#include "choice/machine.h"
#include "tune/sampler.h"

namespace tutti {

/// Sets the numbers of pulls, measured on ordinary memory of this process. Leaves them as they are if the system does
/// not permit pulls or has no memory for them; they are unfinished if the sampler was disturbed.
void measure_pulls(Sampler& sampler, Machine& machine);

}  // namespace tutti
