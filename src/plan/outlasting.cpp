#include "plan/outlasting.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "plan/place_numbers.h"

namespace tutti {

const Place* lasting_place(const Plan& plan, const Action& action, bool scaled) {
  const Place& source = plan.sources(action)[0];
  const bool copies_own = action.verb == Verb::copy && (is_written(source) || source.where == Where::input);
  if (copies_own && !(scaled && source.contribution != 0)) return &source;
  const auto to = plan.destinations(action);
  const auto kept = std::ranges::find_if(to, is_written);
  return kept == to.end() ? nullptr : &*kept;
}

/// Goes through the plan from its end. Steps do not decrease along a plan, so of all later changes of a block the next
/// one decides.
std::vector<bool> outlasting(const Plan& plan) {
  const PlaceNumbers numbers(plan);
  // By name of a block: the step of the next pass that changes it. A copy of a block onto itself, in place, does not.
  std::vector<std::uint32_t> changed(numbers.names(), std::numeric_limits<std::uint32_t>::max());
  std::unordered_map<int, std::uint32_t> sent_to;  // by peer: the step of the message that is open
  const auto lasts = [&](const Action& action, bool scaled, std::uint32_t step) {
    const Place* const block = lasting_place(plan, action, scaled);
    return block == nullptr || changed[numbers.name(static_cast<std::size_t>(block - plan.places.data()))] > step;
  };
  std::vector<bool> lasting(plan.places.size());
  for (std::size_t at = plan.actions.size(); at-- > 0;) {
    const Action& action = plan.actions[at];
    if (action.verb == Verb::commit) sent_to[action.peer] = action.step;
    if (!is_pass(action)) continue;
    const std::size_t first = action.first + action.sources, end = first + action.destinations;
    for (std::size_t place = first; place < end; ++place) {
      if (plan.places[place].where != Where::slot) continue;
      const auto sent = sent_to.find(plan.places[place].peer);
      const std::uint32_t step = sent == sent_to.end() ? action.step : sent->second;
      // Whether sources are scaled is known in the call only.
      lasting[place] = lasts(action, false, step) && lasts(action, true, step);
    }
    const bool copies = action.verb == Verb::copy && plan.sources(action)[0].contribution == 0;
    for (std::size_t place = first; place < end; ++place) {
      if (!is_written(plan.places[place])) continue;
      for (const std::size_t name : {2 * numbers.memory(place), 2 * numbers.memory(place) + 1})
        if (!(copies && numbers.name(action.first) == name)) changed[name] = action.step;
    }
  }
  return lasting;
}

}  // namespace tutti
