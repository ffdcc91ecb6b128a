// Measures what a message over TCP costs this machine: system calls, copies, and the way through the network stack.
#pragma once

#include "choice/machine.h"
#include "tune/sampler.h"

namespace tutti {

/// Sets Machine::wire, measured on a connection over the loopback interface, in a few milliseconds. A real network adds
/// its own time to a message and bounds its speed, which is known only where there is one. Leaves the numbers as they
/// are if there is no such interface; they are unfinished if the sampler was disturbed.
void measure_sockets(Sampler& sampler, Machine& machine);

}  // namespace tutti
