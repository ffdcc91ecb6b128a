#include "exec/pass_loops.h"

#include <algorithm>

namespace tutti {

PassLoops::PassLoops(const Plan& plan, const Binding& binding, const PassRules& rules) : rules_(&rules) {
  std::size_t in = 0, out = 0;  // elements
  if (binding.groups_differ) {
    for (const Range& group : binding.input_groups) in += group.count;
    for (const Range& group : binding.output_groups) out += group.count;
  } else {
    const auto groups = [&](auto count) {
      return static_cast<std::size_t>(count(plan.collective, plan.ranks, plan.rank, plan.root));
    };
    in = groups(input_groups) * binding.split.count();
    out = groups(output_groups) * binding.split.count();
  }
  const std::size_t size = binding.split.element_bytes();
  const std::size_t footprint = LoopFootprints::of_two((in + out) * size, plan.ranks);
  if (rules.nontemporal_bytes != 0) {
    if (std::max(in, out) * size >= rules.nontemporal_bytes) loop_ = Loop::nontemporal;
  } else {
    if (footprint >= LoopFootprints::bytes_min) {
      measured_ = true;
      footprint_ = static_cast<std::uint8_t>(LoopFootprints::nearest(footprint));
    }
    if (plan.access == Access::cma && footprint >= PulledFootprints::bytes_min)
      pulled_ = rules.loops.pulled[PulledFootprints::nearest(footprint)];
  }
  const bool streams = plan.access == Access::slots && rules.streamed_bytes <= binding.split.stride();
  always_plain_ = !measured_ && !pulled_ && loop_ == Loop::plain && !streams;
}

Loop PassLoops::of(const Plan& plan, const Action& action, std::size_t bytes) const {
  const auto is_message = [](const Place& to) { return to.where == Where::slot; };
  if (bytes >= rules_->streamed_bytes && std::ranges::all_of(plan.destinations(action), is_message))
    return Loop::nontemporal;
  if (!writes_results(plan, action)) return Loop::plain;
  if (pulled_ && makes_pulled_sums(plan, action)) return *pulled_;
  if (!measured_) return loop_;
  const bool own = !is_far(plan.sources(action)[0]);
  return rules_->loops.at(pass_class(action.sources, action.destinations, own), footprint_);
}

}  // namespace tutti
