// How a test judges plans that were spoilt: by the proof, and by running them on numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/proof/check.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "support/reference_executor.h"

namespace tutti::testing {

/// The first refusal.
Result<void> check_all(const Schedule& schedule, const std::vector<Plan>& plans, const std::vector<CheckCase>& cases);

/// What all trials of some plans have in common.
struct TrialLimits {
  int slots_min = 0;            ///< fewer would not do for these plans
  std::vector<int> hosts = {};  ///< as Trial::hosts; then there is at least one slot
};

/// The first trial that is not right, or the last. Sums are pre-multiplied in every other one.
InitResult try_out(const Schedule& schedule, Yardstick yardstick, const std::vector<Plan>& plans,
                   const TrialLimits& limits, int trials, std::uint64_t seed);

/// What was found.
struct Tally {
  int mutants = 0;
  int counted = 0;  ///< wrong in some trial
  int refused = 0;  ///< of these
  std::vector<std::string> survivors;

  void add(bool wrong, bool is_refused, const std::string& what) {
    ++mutants;
    if (!wrong) return;
    ++counted;
    if (is_refused)
      ++refused;
    else
      survivors.push_back(what);
  }
};

}  // namespace tutti::testing
