#include "plan/outlasting.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "plan/place_numbers.h"

namespace tutti {
namespace {

/// Goes through a plan from its end. Steps do not decrease along a plan, so of all later changes of a block the next
/// one decides.
class Lasting {
 public:
  explicit Lasting(const Plan& plan) : plan_(plan), numbers_(plan), changed_(numbers_.names(), never) {}

  std::vector<bool> all();

 private:
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

  bool lasts(const Action& action, bool scaled, std::uint32_t step) const;
  void note(const Action& action);

  const Plan& plan_;
  PlaceNumbers numbers_;
  /// By name of a block: the step of the next pass that changes it. A copy of a block onto itself, in place, does not.
  std::vector<std::uint32_t> changed_;
  std::unordered_map<int, std::uint32_t> sent_;  // by peer: the step of the message that is open
};

std::vector<bool> Lasting::all() {
  std::vector<bool> lasting(plan_.places.size());
  for (std::size_t at = plan_.actions.size(); at-- > 0;) {
    const Action& action = plan_.actions[at];
    if (action.verb == Verb::commit) sent_[action.peer] = action.step;
    if (!is_pass(action)) continue;
    const auto to = plan_.destinations(action);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i].where != Where::slot) continue;
      const auto sent = sent_.find(to[i].peer);
      const std::uint32_t step = sent == sent_.end() ? action.step : sent->second;
      // Whether sources are scaled is known in the call only.
      lasting[action.first + action.sources + i] = lasts(action, false, step) && lasts(action, true, step);
    }
    note(action);
  }
  return lasting;
}

bool Lasting::lasts(const Action& action, bool scaled, std::uint32_t step) const {
  const Place* const block = lasting_place(plan_, action, scaled);
  return block == nullptr || changed_[numbers_.name(static_cast<std::size_t>(block - plan_.places.data()))] > step;
}

void Lasting::note(const Action& action) {
  const bool copies = action.verb == Verb::copy && plan_.sources(action)[0].contribution == 0;
  for (std::size_t at = action.first + action.sources; at < action.first + action.sources + action.destinations; ++at) {
    if (!is_written(plan_.places[at])) continue;
    for (const std::size_t name : {2 * numbers_.memory(at), 2 * numbers_.memory(at) + 1})
      if (!(copies && numbers_.name(action.first) == name)) changed_[name] = action.step;
  }
}

}  // namespace

const Place* lasting_place(const Plan& plan, const Action& action, bool scaled) {
  const Place& source = plan.sources(action)[0];
  const bool copies_own = action.verb == Verb::copy && (is_written(source) || source.where == Where::input);
  if (copies_own && !(scaled && source.contribution != 0)) return &source;
  const auto to = plan.destinations(action);
  const auto kept = std::ranges::find_if(to, is_written);
  return kept == to.end() ? nullptr : &*kept;
}

std::vector<bool> outlasting(const Plan& plan) {
  return Lasting(plan).all();
}

}  // namespace tutti
