// Lets the other ranks of a start know that a rank of this process cannot take part, and why.
#pragma once

#include <cstdint>

#include "base/system.h"
#include "net/unique_id.h"
#include "process/process.h"

namespace tutti {

struct RefusedRank {
  int rank = 0;
  int ranks = 1;
};

/// yes: waits two seconds at most until the others are told; the end of the process waits for ranks that are told
/// later. no: nothing waits, as the others have a way to know.
enum class Hold { yes, no };

/// For a rank that fails before the root knows it. Where the root is in this process it is told at once; else this
/// calls it, and the service thread goes on until the deadline if the root does not answer soon.
void refuse_start(Process& process, const UniqueId& id, const RefusedRank& place, const Error& why,
                  std::int64_t deadline_ns, Hold hold = Hold::yes);

/// Advances the task for two seconds at most, for a process without a service thread. False: it has ended.
bool drive_for_a_while(System& system, Task& task);

}  // namespace tutti
