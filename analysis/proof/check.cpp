// Proves the plans of all ranks together.
#include "analysis/proof/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "analysis/proof/check_machine.h"
#include "analysis/proof/check_operands.h"
#include "analysis/proof/check_residency.h"
#include "analysis/proof/check_terms.h"

namespace tutti {
namespace {

Error refused(Rank rank, std::string what) {
  return Error{.code = Code::internal, .what = std::move(what), .peer = rank};
}

/// Ranks that fill a slot and ranks that read it must agree on how it is divided.
Result<void> alike(std::span<const Plan> plans) {
  for (const Plan& plan : plans) {
    if (plan.access != plans[0].access) return refused(plan.rank, "has another access than rank 0");
    if (plan.items_max != plans[0].items_max) return refused(plan.rank, "another items_max than rank 0's");
  }
  return {};
}

/// Runs the calls. If all is right, passes the machine to `look`.
template <class Look>
Result<void> run(std::span<const CheckedCall> calls, const CheckCase& how, bool multiplied, Look&& look) {
  std::deque<proof::Terms> terms;
  std::deque<std::vector<std::vector<proof::Terms::Id>>> outputs;
  std::vector<proof::Program> programs;
  for (const CheckedCall& call : calls) {
    const Schedule& schedule = *call.schedule;
    const int ranks = calls[0].schedule->ranks();
    if (call.plans.size() != static_cast<std::size_t>(ranks) || schedule.ranks() != ranks)
      return refused(0, fmt::format("{} plans for {} ranks", call.plans.size(), ranks));
    for (Rank rank = 0; rank < ranks; ++rank)
      TUTTI_TRY(proof::check_operands(schedule, call.plans[static_cast<std::size_t>(rank)], rank));
    TUTTI_TRY(alike(call.plans));

    outputs.push_back(TUTTI_TRY(proof::outcome(schedule, terms.emplace_back(schedule))));
    programs.push_back({.schedule = &schedule,
                        .plans = call.plans,
                        .in_place = &call.in_place,
                        .terms = &terms.back(),
                        .outputs = &outputs.back()});
  }
  proof::Machine machine(programs, how, multiplied);
  TUTTI_TRY(machine.run());
  look(machine);
  return {};
}

}  // namespace

Result<void> check(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how) {
  const CheckedCall call{.schedule = &schedule, .plans = plans, .in_place = how.in_place};
  return check(std::span(&call, 1), how);
}

Result<void> check(std::span<const CheckedCall> calls, const CheckCase& how) {
  const auto look = [](const proof::Machine&) {};
  TUTTI_TRY(run(calls, how, /*multiplied=*/false, look));
  // What is offered depends on it.
  const bool sums = std::ranges::any_of(calls, [](const CheckedCall& c) { return reduces(c.schedule->collective()); });
  if (how.hosts.empty() || how.slots == 0 || !sums) return {};
  auto ran = run(calls, how, /*multiplied=*/true, look);
  if (!ran) return std::move(ran).error().during("a pre-multiplied sum");
  return {};
}

Result<Residency> residency(const Schedule& schedule, std::span<const Plan> plans, const CheckCase& how) {
  const CheckedCall call{.schedule = &schedule, .plans = plans, .in_place = how.in_place};
  CheckCase once = how;
  once.calls = 1;
  Residency found;
  TUTTI_TRY(run(std::span(&call, 1), once, /*multiplied=*/false, [&](const proof::Machine& machine) {
    found = {.channels = machine.channels() * schedule.ranks(), .resident = 1};
    for (int channel = 0; channel < machine.channels(); ++channel)
      found.resident += proof::blocked_max(machine.waits(channel), schedule.ranks());
  }));
  return found;
}

std::vector<CheckCase> check_cases(Collective collective, int ranks, Access access) {
  const auto size = static_cast<std::size_t>(ranks);
  std::vector<std::vector<bool>> mixes{{}};
  const InPlace in_place = facts_of(collective).in_place;
  if (in_place != InPlace::by_copy && in_place != InPlace::never) {
    mixes.push_back(std::vector<bool>(size, true));
    if (ranks > 1 && !rooted(collective)) {  // in a rooted collective, only the root has both buffers
      mixes.push_back(std::vector<bool>(size));
      for (std::size_t rank = 1; rank < size; rank += 2) mixes.back()[rank] = true;
    }
  }
  std::vector<CheckCase> cases;
  for (const auto& mix : mixes) {
    if (access != Access::slots) {
      cases.push_back({.slots = 1, .channels = 1, .tiles = 1, .calls = 2, .in_place = mix});
    } else {
      for (const int slots : {0, 1, 2})
        cases.push_back({.slots = slots, .channels = 2, .tiles = 3, .calls = 2, .in_place = mix});
    }
  }
  return cases;
}

}  // namespace tutti
