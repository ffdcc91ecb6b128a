// Where a contribution that an output block lacks was lost.
#pragma once

#include <cstdint>
#include <string>

#include "plan/schedule.h"
#include "plan/verify.h"

namespace tutti {

/// A block of a rank's input.
struct Contribution {
  Rank rank = 0;
  int block = 0;
};

/// ": no transfer reads it; …": of the contribution that output block `block` of rank `to` lacks at the end, the write
/// that lost it, or the last place that it came to, or the write that should have added it; and the last write of the
/// block. `schedule` runs, see verify.
std::string loss_text(const Schedule& schedule, Contribution lost, Rank to, int block, const NameOfWrite& name);

/// "output block 3"
std::string text(Ref ref);

}  // namespace tutti
