#include "plan/outlasting.h"

#include <algorithm>
#include <cstddef>

namespace tutti {
namespace {

bool own(const Place& place) {
  return place.where == Where::output || place.where == Where::scratch;
}

/// The step of the message to `peer` that is open at action `at`.
std::uint32_t message_step(const Plan& plan, std::size_t at, std::uint16_t peer) {
  for (std::size_t i = at + 1; i < plan.actions.size(); ++i)
    if (plan.actions[i].verb == Verb::commit && plan.actions[i].peer == peer) return plan.actions[i].step;
  return plan.actions[at].step;
}

/// Whether a pass after action `at`, up to those of `step`, changes the block.
bool changes(const Plan& plan, std::size_t at, std::uint32_t step, const Place& block) {
  for (std::size_t i = at + 1; i < plan.actions.size(); ++i) {
    const Action& later = plan.actions[i];
    if (!is_pass(later)) continue;
    if (later.step > step) return false;
    const Place& source = plan.sources(later)[0];
    if (later.verb == Verb::copy && source.leaf == 0 && same_block(source, block)) continue;  // in place, onto itself
    for (const Place& place : plan.destinations(later))
      if (own(place) && same_memory(plan, place, block)) return true;
  }
  return false;
}

}  // namespace

const Place* lasting_place(const Plan& plan, const Action& action, bool scaled) {
  const Place& source = plan.sources(action)[0];
  const bool copies_own = action.verb == Verb::copy && (own(source) || source.where == Where::input);
  if (copies_own && !(scaled && source.leaf != 0)) return &source;
  const auto to = plan.destinations(action);
  const auto kept = std::ranges::find_if(to, own);
  return kept == to.end() ? nullptr : &*kept;
}

std::vector<bool> outlasting(const Plan& plan) {
  std::vector<bool> all(plan.places.size());
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (!is_pass(action)) continue;
    const auto to = plan.destinations(action);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i].where != Where::slot) continue;
      const std::uint32_t step = message_step(plan, at, to[i].peer);
      // Whether sources are scaled is known in the call only.
      const auto lasts = [&](const Place* block) { return block == nullptr || !changes(plan, at, step, *block); };
      all[action.first + action.sources + i] =
          lasts(lasting_place(plan, action, false)) && lasts(lasting_place(plan, action, true));
    }
  }
  return all;
}

}  // namespace tutti
