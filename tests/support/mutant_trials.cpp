#include "support/mutant_trials.h"

#include <algorithm>

namespace tutti::testing {

Result<void> check_all(const Schedule& schedule, const std::vector<Plan>& plans, const std::vector<CheckCase>& cases) {
  for (const CheckCase& how : cases)
    if (auto checked = check(schedule, plans, how); !checked) return checked;
  return {};
}

InitResult try_out(const Schedule& schedule, Yardstick yardstick, const std::vector<Plan>& plans,
                   const TrialLimits& limits, int trials, std::uint64_t seed) {
  const bool adds = reduces(schedule.collective());
  const Arithmetic multiplied(yardstick, adds, seed), plain(yardstick, adds, seed, /*scales=*/false);
  Expected expected(schedule, yardstick);
  InitResult verdict;
  for (int i = 0; i < trials && verdict.outcome == Outcome::right; ++i) {
    Trial trial = random_trial(plans[0], seed + static_cast<std::uint64_t>(i));
    trial.slots = std::max({trial.slots, limits.slots_min, limits.hosts.empty() ? 0 : 1});
    trial.hosts = limits.hosts;
    verdict = ReferenceExecutor(plans, expected, i % 2 == 0 ? multiplied : plain, trial).run();
  }
  return verdict;
}

}  // namespace tutti::testing
