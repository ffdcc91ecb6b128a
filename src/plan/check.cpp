// Proves the programs of all ranks together.
#include "plan/check.h"

#include <fmt/format.h>

#include "plan/check_machine.h"
#include "plan/check_operands.h"
#include "plan/check_terms.h"

namespace tutti {
namespace {

Error refused(Rank rank, std::string what) {
  return Error{.code = Code::internal, .what = std::move(what), .peer = rank};
}

/// Ranks that fill a slot and ranks that read it must cut it alike.
Result<void> alike(std::span<const Plan> plans) {
  for (const Plan& plan : plans) {
    if (plan.reach != plans[0].reach) return refused(plan.rank, "reaches its peers in another way than rank 0");
    if (plan.items_max != plans[0].items_max) return refused(plan.rank, "another items_max than rank 0's");
  }
  return {};
}

}  // namespace

Result<void> check(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how) {
  const int ranks = schedule.ranks();
  if (plans.size() != static_cast<std::size_t>(ranks))
    return refused(0, fmt::format("{} plans for {} ranks", plans.size(), ranks));
  for (Rank rank = 0; rank < ranks; ++rank)
    if (auto good = proof::check_operands(schedule, plans[static_cast<std::size_t>(rank)], rank); !good) return good;
  if (auto good = alike(plans); !good) return good;

  proof::Terms terms(schedule);
  const auto outputs = proof::outcome(schedule, terms);
  if (!outputs) return Error(outputs.error());
  return proof::Machine(schedule, plans, how, terms, *outputs).run();
}

std::vector<CheckCase> check_cases(Collective collective, int ranks, Reach reach) {
  const auto size = static_cast<std::size_t>(ranks);
  std::vector<std::vector<bool>> mixes{{}};
  if (collective != Collective::all_to_all && collective != Collective::barrier) {
    mixes.push_back(std::vector<bool>(size, true));
    if (ranks > 1 && !rooted(collective)) {  // of a rooted collective, only the root has both buffers
      mixes.push_back(std::vector<bool>(size));
      for (std::size_t rank = 1; rank < size; rank += 2) mixes.back()[rank] = true;
    }
  }
  std::vector<CheckCase> cases;
  for (const auto& mix : mixes) {
    if (reach != Reach::fifo) {
      cases.push_back({.slots = 1, .lanes = 1, .tiles = 1, .calls = 2, .in_place = mix});
    } else {
      for (const int slots : {0, 1, 2})
        cases.push_back({.slots = slots, .lanes = 2, .tiles = 3, .calls = 2, .in_place = mix});
    }
  }
  return cases;
}

}  // namespace tutti
