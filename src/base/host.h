// Names of this host and process.
#pragma once

#include <sched.h>

#include <string>

namespace tutti {

std::string host_name();     ///< "node-b"; "localhost" if unknown to the system
std::string this_process();  ///< "pid 48211 on node-b"
bool is_traced();            ///< a debugger is attached to this process

/// On which the calling thread may run; where the system does not say (a filter, more CPUs than a set has), all CPUs of
/// the machine that a set has.
cpu_set_t own_cpus();

}  // namespace tutti
