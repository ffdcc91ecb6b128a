// Measures what predictions are made from.
#pragma once

#include <sched.h>

#include "algorithms/machine.h"

namespace tutti {

/// Takes some tenths of a second, two threads and 64 MiB, on the first two of `cpus`; what takes longer on a slow
/// machine is measured less often. Each number is the best of several, as other work can only add to it; what cannot be
/// measured (a single core, no permission) keeps its default. Every number is one that Machine::of accepts.
Machine measure(const cpu_set_t& cpus);

}  // namespace tutti
