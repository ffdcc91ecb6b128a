#include "plan/inviting.h"

#include <algorithm>

#include "plan/place_numbers.h"

namespace tutti {
namespace {

/// In peers' buffers: such a plan's memory is also touched by others.
bool reaches_over(const Plan& plan) {
  return std::ranges::any_of(plan.places, [](const Place& place) {
    return place.where == Where::peer_input || place.where == Where::peer_output;
  });
}

}  // namespace

Invitations invitations(const Plan& plan) {
  if (plan.access != Access::slots || reaches_over(plan)) return {};
  const PlaceNumbers numbers(plan);
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  // By memory: the action behind the last one that reads or writes it. By rank: blocks of the message last opened, 0
  // once a pass has read one.
  std::vector<std::uint32_t> touched(numbers.memories()), open(ranks);
  Invitations found{.all = {}, .messages = std::vector<std::uint32_t>(ranks)};
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const Action& action = plan.actions[at];
    if (action.verb == Verb::peek) open[action.peer] = action.items;
    if (action.verb == Verb::release) ++found.messages[action.peer];
    if (!is_pass(action)) continue;
    if (const std::uint16_t peer = plan.sources(action)[0].peer; open[peer] == 1 && lands(plan, at)) {
      const auto place = static_cast<std::size_t>(landing_place(plan, action) - plan.places.data());
      found.all.push_back({.pass = static_cast<std::uint32_t>(at),
                           .free_from = touched[numbers.memory(place)],
                           .number = found.messages[peer],
                           .peer = peer});
    }
    for (const Place& source : plan.sources(action))
      if (source.where == Where::slot) open[source.peer] = 0;
    for (std::size_t place = action.first; place < action.first + action.sources + action.destinations; ++place)
      if (!is_far(plan.places[place])) touched[numbers.memory(place)] = static_cast<std::uint32_t>(at + 1);
  }
  return found;
}

const Place* landing_place(const Plan& plan, const Action& action) {
  const auto to = plan.destinations(action);
  const auto first = std::ranges::find_if(to, is_written);
  return first == to.end() ? nullptr : &*first;
}

bool lands(const Plan& plan, std::size_t pass) {
  const Action& action = plan.actions[pass];
  if (action.verb != Verb::copy || landing_place(plan, action) == nullptr) return false;
  const Place& from = plan.sources(action)[0];
  if (from.where != Where::slot) return false;
  for (std::size_t i = pass + 1; i < plan.actions.size(); ++i) {
    const Action& later = plan.actions[i];
    if (later.verb == Verb::release && later.peer == from.peer) break;
    if (is_pass(later) &&
        std::ranges::any_of(plan.sources(later), [&](const Place& place) { return same_block(place, from); }))
      return false;
  }
  return true;
}

}  // namespace tutti
