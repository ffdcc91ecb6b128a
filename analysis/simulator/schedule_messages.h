// The messages of a schedule.
#pragma once

#include <memory>

#include "analysis/simulator/messages.h"
#include "plan/schedule.h"

namespace tutti::simulator {

/// For a call whose largest buffer of a rank has `bytes` bytes; all blocks have one size, possibly a fraction of a
/// byte. A rank sends its messages in the order of cyclic distance. Local work takes no time; a sum of m blocks is m -
/// 1 additions. `schedule` must outlive the result.
std::unique_ptr<MessageSource> messages_of(const Schedule& schedule, double bytes);

/// Number of blocks in the largest buffer of a rank.
double blocks_of_call(const Schedule& schedule);

}  // namespace tutti::simulator
