// The messages of a schedule.
#pragma once

#include <memory>

#include "plan/schedule.h"
#include "simulator/messages.h"

namespace tutti::simulator {

/// Of a call whose largest buffer of a rank has so many bytes, all blocks of one size, fractions of a byte included. A
/// rank hands over its messages in the order of the distance, around. What it does for itself alone takes no time; a
/// sum of m blocks is m - 1 additions. `schedule` must outlive the result.
std::unique_ptr<MessageSource> messages_of(const Schedule& schedule, double bytes);

/// Blocks in the largest buffer of a rank.
double blocks_of_call(const Schedule& schedule);

}  // namespace tutti::simulator
