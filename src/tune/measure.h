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

// Its parts.

class Sampler;
/// Sets the rates of every class of pass, by footprint and loop. Unfinished if the sampler was disturbed.
void measure_loops(Sampler& sampler, LoopRates& rates);
/// Sets the numbers of pulls, measured on ordinary memory of this process. Leaves them as they are if the system does
/// not permit pulls or has no memory for them; they are unfinished if the sampler was disturbed.
void measure_pulls(Sampler& sampler, Machine& machine);
/// Sets Machine::wire, measured on a connection over the loopback interface, in a few milliseconds. A real network adds
/// its own time to a message and bounds its speed, which is known only where there is one. Leaves the numbers as they
/// are if there is no such interface; they are unfinished if the sampler was disturbed.
void measure_sockets(Sampler& sampler, Machine& machine);

}  // namespace tutti
