// Proves the plans of all ranks together.
#include "analysis/proof/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/proof/check_machine.h"
#include "analysis/proof/check_operands.h"
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
  std::vector<proof::Stage> stages;
  for (const CheckedCall& call : calls) {
    const Schedule& schedule = *call.schedule;
    const int ranks = calls[0].schedule->ranks();
    if (call.plans.size() != static_cast<std::size_t>(ranks) || schedule.ranks() != ranks)
      return refused(0, fmt::format("{} plans for {} ranks", call.plans.size(), ranks));
    for (Rank rank = 0; rank < ranks; ++rank)
      TUTTI_TRY(proof::check_operands(schedule, call.plans[static_cast<std::size_t>(rank)], rank));
    TUTTI_TRY(alike(call.plans));
    proof::Stage& stage = stages.emplace_back(call, how);
    stage.outputs = TUTTI_TRY(proof::outcome(schedule, stage.terms));
  }
  proof::Machine machine(std::move(stages), how, multiplied);
  TUTTI_TRY(machine.run());
  look(machine);
  return {};
}

/// An upper bound of the channels with one index that can wait at the same time for channels that are not resident.
///
/// Suppose that all ranks except those of a set U are resident. Then exactly the ranks that wait for a rank of U wait
/// forever. A rank that is neither in U nor waits for U may be added to U. So for a U that blocks the most ranks, every
/// rank is in U or waits for U, and the number of blocked ranks is ranks − |U|. Now take ranks whose sets, the rank
/// itself and all ranks it waits for, have no member in common: each set contains a different member of U. So |U| is at
/// least the number of such ranks that are found.
int blocked_max(const proof::Waits& waits, int ranks) {
  std::vector<std::vector<Rank>> held_up_by;  // by rank: the rank itself and the ranks it waits for
  for (Rank rank = 0; rank < ranks; ++rank) {
    held_up_by.emplace_back();
    for (Rank peer = 0; peer < ranks; ++peer)
      if (peer == rank || waits[static_cast<std::size_t>(rank) * ranks + peer] != 0) held_up_by.back().push_back(peer);
  }
  std::ranges::stable_sort(held_up_by, {}, [](const std::vector<Rank>& all) { return all.size(); });

  int apart = 0;
  std::vector<char> taken(static_cast<std::size_t>(ranks));
  for (const std::vector<Rank>& all : held_up_by) {
    const auto is_taken = [&taken](Rank rank) { return taken[static_cast<std::size_t>(rank)] != 0; };
    if (std::ranges::any_of(all, is_taken)) continue;
    for (const Rank rank : all) taken[static_cast<std::size_t>(rank)] = 1;
    ++apart;
  }
  return ranks - apart;
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
      found.resident += blocked_max(machine.waits(channel), schedule.ranks());
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
