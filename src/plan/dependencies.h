// Which flags order the ranks where they reach into each other's memory.
#pragma once

#include <span>
#include <vector>

#include "plan/jobs.h"

namespace tutti {

/// A flag to raise after, or to wait for before, the job at `position` of a rank's jobs; for waits one past the last
/// means at the end.
struct FlagAt {
  int position = 0;
  Rank peer = 0;
};

struct Flags {
  std::vector<FlagAt> signals;  ///< by position
  std::vector<FlagAt> waits;    ///< by position
};

/// True if two ranks touch one block in one step, and one of them writes: no flag lies in between.
bool races(const Schedule& schedule, const Jobs& jobs);

/// A flag for each block that one rank touches after another in a later step, where one of them writes, whoever works
/// in place; and for each peer that touched this rank's memory, before the call ends. Flags that others imply are left
/// out. The k-th signal of a pair is the k-th wait on the other side. One for each of `ranks`. Requires no races.
std::vector<Flags> flags(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks);

}  // namespace tutti
