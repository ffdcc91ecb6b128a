#include "gpu/local_plans.h"

#include "base/limits.h"

namespace tutti {
namespace {

Plan empty_plan(int ranks) {
  return {.collective = Collective::reduce_scatter, .access = Access::slots, .ranks = ranks};
}

/// Adds a pass over the places that begin at `first`: some sources and a destination, a sum of so many `inputs`.
void add_pass(Plan& plan, std::size_t first, bool last, int inputs) {
  plan.actions.push_back({.verb = Verb::reduce,
                          .last = static_cast<std::uint8_t>(last ? 1 : 0),
                          .sources = static_cast<std::uint16_t>(plan.places.size() - first - 1),
                          .destinations = 1,
                          .first = static_cast<std::uint32_t>(first),
                          .halvings = static_cast<std::uint32_t>(halvings_of(inputs))});
}

}  // namespace

Plan combine_plan(int ranks) {
  Plan plan = empty_plan(ranks);
  plan.scratch_groups = 1;
  for (int next = 0; next < ranks;) {
    const std::size_t first = plan.places.size();
    if (next > 0) {
      plan.places.push_back({.where = Where::scratch});
      plan.places.back().halvings = halvings_of(next);
    }
    for (; next < ranks && plan.places.size() - first < limits::sources_max; ++next)
      plan.places.push_back({.where = Where::peer_input, .peer = static_cast<std::uint16_t>(next)});
    const bool last = next == ranks;
    plan.places.push_back({.where = last ? Where::output : Where::scratch});
    add_pass(plan, first, last, next);
  }
  return plan;
}

Plan scale_plan(int ranks) {
  Plan plan = empty_plan(ranks);
  plan.places = {{.where = Where::input, .contribution = 1}, {.where = Where::output}};
  add_pass(plan, 0, /*last=*/true, /*inputs=*/1);
  return plan;
}

}  // namespace tutti
