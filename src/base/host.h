// Names of this host and process.
#pragma once

#include <sched.h>
#include <cstdint>

#include <string>

namespace tutti {

std::string host_name();     ///< "node-b"; "localhost" if unknown to the system
std::string this_process();  ///< "pid 48211 on node-b"
bool is_traced();            ///< a debugger is attached to this process

/// On which the calling thread may run; where the system does not say (a filter, more CPUs than a set has), all CPUs of
/// the machine that a set has.
cpu_set_t own_cpus();

/// A process whose memory is copied. By its number, and by a word in its memory that nobody else has: a process that
/// becomes another program (exec) keeps its number, and may have other data at the same address.
struct ForeignProcess {
  int pid = 0;                ///< 0: none
  std::uint64_t word_at = 0;  ///< its address there; 0: the process is known to stay what it is
  std::uint64_t word = 0;

  explicit operator bool() const { return pid != 0; }
};

}  // namespace tutti
