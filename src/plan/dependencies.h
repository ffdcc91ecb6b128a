// The flags that order ranks which access each other's memory.
#pragma once

#include <span>
#include <vector>

#include "plan/jobs.h"

namespace tutti {

/// A flag to raise after the job at `position` of a rank's jobs, or to wait for before it; for waits, one past the last
/// job means the end of the call.
struct FlagAt {
  int position = 0;
  Rank peer = 0;
};

struct Flags {
  std::vector<FlagAt> signals;  ///< by position
  std::vector<FlagAt> waits;    ///< by position
};

/// True if two ranks access one block in one step and at least one of them writes: no flag can order them.
bool races(const Schedule& schedule, const Jobs& jobs);

/// A flag for each block that one rank accesses after another rank did in an earlier step, if one of them writes, for
/// every choice of ranks in place; and a flag from each peer that accessed this rank's memory, before the call ends.
/// Flags implied by others are left out. The k-th signal of a pair matches the k-th wait on the other side. One result
/// for each of `ranks`. Requires no races.
std::vector<Flags> flags(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks);

}  // namespace tutti
