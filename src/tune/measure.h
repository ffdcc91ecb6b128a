// Measures the numbers that predictions are based on.
#pragma once

#include <sched.h>

#include <optional>

#include "choice/machine.h"
#include "tune/tune.h"

namespace tutti {

/// Takes some tenths of a second, two threads and 64 MiB, on the first two of `cpus`; on a slow machine, long
/// measurements are repeated less often. Each number is the best of several samples during which no other program had
/// the cores: a sample next to other work can be wrong by a factor of a thousand. Nothing if there was no such time, or
/// all numbers together took longer than 0.8 s of real time. A number that cannot be measured (a single core, no
/// permission) keeps its default. Machine::of accepts every number.
std::optional<MeasuredNumbers> measure(const cpu_set_t& cpus);

/// Machine::hop_us alone, in less than a millisecond. Nothing if there was no such time within 0.1 s, or with a single
/// core.
std::optional<double> measure_hop(const cpu_set_t& cpus);

}  // namespace tutti
