// Slurm's short forms of lists of nodes and of tasks.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

/// The first of "n[1-3,7],gpu[001-003]-ib": "n1". Errors: invalid_argument.
Result<std::string> slurm_first_node(std::string_view nodes);

/// Number of tasks on node `node` (from 0), according to "2(x3),1". Errors: invalid_argument.
Result<int> slurm_tasks_on_node(std::string_view tasks, int node);

}  // namespace tutti
