// Which of its host's ranks this one is, as far as a launcher has said so.
#pragma once

#include <optional>

namespace perf {

/// From the variables of the launcher that numbered this rank `rank`: those of another launcher, such as the batch
/// script's around it, say something else or nothing. Nothing: unknown.
std::optional<int> local_rank(int rank);

}  // namespace perf
