// Right schedules and plans, spoilt at random: what a proof must refuse.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"
#include "support/random.h"

namespace tutti::testing {

struct ScheduleMutant {
  Schedule schedule;
  std::string what;  ///< which change, for the list of survivors
};

/// One random change: a transfer dropped or twice, another rank, block, buffer, step, order or kind, two that swap
/// ends. The schedule has transfers.
ScheduleMutant mutate(const Schedule& schedule, Random& random);

struct PlanMutant {
  std::vector<Plan> plans;
  std::string what;
};

/// One random change of one rank's actions, or of a pair of actions that belong together on two ranks: dropped,
/// doubled, moved, swapped; another peer, item count, part, mark; a source or destination more, less, swapped,
/// elsewhere. Some rank has actions.
PlanMutant mutate(const std::vector<Plan>& plans, Random& random);

}  // namespace tutti::testing
