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

/// Goes through a plan from its beginning.
class Inviting {
 public:
  explicit Inviting(const Plan& plan)
      : plan_(plan), numbers_(plan), touched_(numbers_.memories(), 0), open_(static_cast<std::size_t>(plan.ranks)) {}

  Invitations all();

 private:
  void consider(std::size_t at);

  const Plan& plan_;
  PlaceNumbers numbers_;
  std::vector<std::uint32_t> touched_;  // by memory: the action behind the last one that reads or writes it
  std::vector<std::uint32_t> open_;     // by rank: blocks of the message last opened, 0 once a pass has read one
  Invitations found_;
};

Invitations Inviting::all() {
  found_.messages.resize(open_.size());
  for (std::size_t at = 0; at < plan_.actions.size(); ++at) {
    const Action& action = plan_.actions[at];
    if (action.verb == Verb::peek) open_[action.peer] = action.items;
    if (action.verb == Verb::release) ++found_.messages[action.peer];
    if (!is_pass(action)) continue;
    consider(at);
    for (const Place& source : plan_.sources(action))
      if (source.where == Where::slot) open_[source.peer] = 0;
    for (std::size_t place = action.first; place < action.first + action.sources + action.destinations; ++place)
      if (!is_far(plan_.places[place])) touched_[numbers_.memory(place)] = static_cast<std::uint32_t>(at + 1);
  }
  return std::move(found_);
}

void Inviting::consider(std::size_t at) {
  const Action& action = plan_.actions[at];
  const std::uint16_t peer = plan_.sources(action)[0].peer;
  if (open_[peer] != 1 || !lands(plan_, at)) return;
  const auto place = static_cast<std::size_t>(landing_place(plan_, action) - plan_.places.data());
  found_.all.push_back({.pass = static_cast<std::uint32_t>(at),
                        .free_from = touched_[numbers_.memory(place)],
                        .number = found_.messages[peer],
                        .peer = peer});
}

}  // namespace

Invitations invitations(const Plan& plan) {
  if (plan.access != Access::slots || reaches_over(plan)) return {};
  return Inviting(plan).all();
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
