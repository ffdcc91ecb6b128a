// Calls whose groups differ in size: which schedules serve them.
#pragma once

#include "plan/schedule.h"

namespace tutti {

/// Whatever a rank sends is its own input and lands in its receiver's output, and no rank sends another more than one
/// block. So it suffices that the two ends of each pair know how much they exchange, and messages of nothing need not
/// be sent. True of schedules of one part alone.
bool direct(const Schedule& schedule);

/// Of an all-gather: output group g never holds anything but what rank g contributes, and there is no scratch. So it
/// serves groups of any sizes where all ranks know all of them. True of schedules of one part alone.
bool keeps_groups(const Schedule& schedule);

}  // namespace tutti
