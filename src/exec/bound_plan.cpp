#include "exec/bound_plan.h"

namespace tutti {

/// The size of the group that a pass belongs to, if groups differ. Each pass of a plan for such calls has a place in a
/// buffer of this rank, or is part of a sum that becomes this rank's only output group.
std::size_t BoundPlan::elements_of(const Action& action) const {
  for (const auto& places : {plan_->destinations(action), plan_->sources(action)})
    for (const Place& place : places) {
      if (place.where == Where::input) return binding_->input_groups[place.block].count;
      if (place.where == Where::output) return binding_->output_groups[place.block].count;
      if (place.where == Where::scratch) return binding_->output_groups[0].count;
    }
  assert(false && "a plan that does not serve groups of different sizes");
  return 0;
}

bool BoundPlan::is_empty_message(const Action& action, std::size_t tile) const {
  const auto groups = action.verb == Verb::acquire ? binding_->input_groups : binding_->output_groups;
  const std::size_t count = groups[groups.size() == 1 ? 0 : std::size_t{action.peer}].count;
  return binding_->split.tile_of_group(count, tile).count == 0;
}

/// The start of a group in elements, if groups differ. A peer's memory holds only one group.
std::size_t BoundPlan::begin_of(const Place& place) const {
  switch (place.where) {
    case Where::input: return binding_->input_groups[place.block].begin;
    case Where::output: return binding_->output_groups[place.block].begin;
    case Where::scratch: return place.block * binding_->split.count();
    case Where::slot:
    case Where::peer_input:
    case Where::peer_output:
    case Where::peer_payload: break;
  }
  return 0;
}

}  // namespace tutti
