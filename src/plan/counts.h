// Which schedules serve calls whose groups differ in size.
#pragma once

#include "plan/schedule.h"

namespace tutti {

/// True if each rank sends only its own input, to the output of the receiver, and at most one block to any other rank.
/// Then each pair of ranks needs to know only how much it exchanges, and empty messages need not be sent. True only of
/// schedules with one part.
bool direct(const Schedule& schedule);

/// For an all-gather: true if output group g never holds anything but rank g's contribution, and there is no scratch.
/// Then the schedule serves groups of any sizes, if all ranks know all sizes. True only of schedules with one part.
bool keeps_groups(const Schedule& schedule);

}  // namespace tutti
