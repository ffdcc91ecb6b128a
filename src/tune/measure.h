// Measures what predictions are made from.
#pragma once

#include <sched.h>

#include <optional>

#include "algorithms/machine.h"

namespace tutti {

/// Takes some tenths of a second, two threads and 64 MiB, on the first two of `cpus`; what takes longer on a slow
/// machine is measured less often. Each number is the best of several during which no other program had the cores: what
/// is measured beside other work can be wrong a thousandfold. Nothing when there was no such time. What cannot be
/// measured (a single core, no permission) keeps its default. Every number is one that Machine::of accepts.
std::optional<Machine> measure(const cpu_set_t& cpus);

}  // namespace tutti
