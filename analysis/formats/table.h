// Schedules and plans as readable text.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti::formats {

/// "in.0-3": blocks of a buffer, as ranges.
std::string blocks_text(Buffer buffer, std::vector<int> blocks);

/// "all_reduce of 4 ranks: 6 steps, 24 messages, 4 parts, 0 scratch groups".
std::string summary(const Schedule& schedule);

/// A line per message, and per rank's own work in a step: step, from, to, action, blocks. `rank`: only the lines that
/// it takes part in.
std::string table(const Schedule& schedule, std::optional<Rank> rank = {});

/// One action per line: `acquire 1 x2` opens a message of two items to rank 1; in `reduce *in.0 slot(1).0 -> out.0
/// last` the star marks a contribution, and slot(1), in(1), out(1), line(1) belong to rank 1.
std::string table(const Plan& plan);

}  // namespace tutti::formats
