#include "choice/pass_prices.h"

#include <algorithm>
#include <cmath>

namespace tutti {

PassPrices::PassPrices(const Machine& machine, const LoopTable& loops, const Conditions& conditions,
                       const CallCosts& call, int ranks)
    : machine_(machine),
      loops_(loops),
      conditions_(conditions),
      call_(call),
      footprint_(LoopFootprints::of_two(static_cast<std::size_t>(call.own_bytes), ranks)),
      write_pulled_(pulled_write_us()) {}

double PassPrices::us(const Plan& plan, const Action& action) const {
  const auto from = plan.sources(action);
  const auto to = plan.destinations(action);
  double us = machine_.pass_us;
  if (const auto of_class = measured_loop(plan, action)) {
    const std::size_t at = LoopFootprints::nearest(footprint_);
    const auto loop = static_cast<std::size_t>(loops_.best[*of_class][at]);
    return us + call_.block_bytes * static_cast<double>(from.size() + to.size()) * 1e-3 /
                    machine_.loops.gbps[*of_class][at][loop];
  }
  for (const Place& place : from) us += operand_us(plan, place, true);
  // CMA copies a source directly to its destination if it is not to be combined with others first.
  const bool lands = plan.access == Access::cma && from.size() == 1 && is_far(from[0]);
  const bool pulled = makes_pulled_sums(plan, action);
  for (std::size_t i = lands ? 1 : 0; i < to.size(); ++i)
    us += pulled ? call_.block_bytes * write_pulled_ : operand_us(plan, to[i], false);
  if (plan.access == Access::cma) {
    const double calls = lands ? 1
                               : std::ceil(call_.block_bytes * static_cast<double>(from.size()) /
                                           static_cast<double>(machine_.pull.bounce_bytes()));
    us += calls * machine_.pull.call_us * static_cast<double>(std::ranges::count_if(from, is_far));
  }
  return us;
}

/// µs per byte of a store to a sum that a peer copies afterwards. Such sums were measured together with their copies.
double PassPrices::pulled_write_us() const {
  if (footprint_ < PulledFootprints::bytes_min) return call_.byte.write;
  const std::size_t at = PulledFootprints::nearest(footprint_);
  const auto loop = std::ranges::find(PulledFootprints::loops, loops_.pulled[at]) - PulledFootprints::loops.begin();
  const double both = 1e-3 / machine_.loops.pulled_gbps[at][static_cast<std::size_t>(loop)];
  return std::max(call_.byte.write, both - call_.byte.read - call_.byte.pull);
}

/// The class of a pass between users' buffers that are too large for the cache; such passes were measured as a whole.
std::optional<std::size_t> PassPrices::measured_loop(const Plan& plan, const Action& action) const {
  // Measured where all pairs are alike.
  const auto is_slow = [&](bool read) {
    return [&, read](const Place& place) { return is_far(place) && link_us(plan, place, read) > call_.byte.far_read; };
  };
  if (std::ranges::any_of(plan.sources(action), is_slow(true)) ||
      std::ranges::any_of(plan.destinations(action), is_slow(false)))
    return {};
  if (plan.access != Access::mapped || footprint_ < LoopFootprints::bytes_min || !writes_results(plan, action))
    return {};
  return pass_class(action.sources, action.destinations, !is_far(plan.sources(action)[0]));
}

/// The time that this operand adds to a pass.
double PassPrices::operand_us(const Plan& plan, const Place& place, bool read) const {
  if (plan.access == Access::cma && is_far(place)) return call_.block_bytes * call_.byte.pull;
  if (is_far(place) && conditions_.apart(plan.rank, place.peer)) return call_.block_bytes * 1e-3 / machine_.wire.gbps;
  if (is_far(place))
    return call_.block_bytes * std::max(read ? call_.byte.far_read : call_.byte.far_write, link_us(plan, place, read));
  return call_.block_bytes * (read ? call_.byte.read : call_.byte.write);
}

/// µs per byte of the link between the rank and the owner of a place; 0: unknown.
double PassPrices::link_us(const Plan& plan, const Place& place, bool read) const {
  if (conditions_.pair_gbps.empty()) return 0;
  const auto ranks = static_cast<std::size_t>(plan.ranks), own = static_cast<std::size_t>(plan.rank);
  const auto peer = static_cast<std::size_t>(place.peer);
  const double gbps = conditions_.pair_gbps[read ? peer * ranks + own : own * ranks + peer];
  return gbps > 0 ? 1e-3 / gbps : 0;
}

}  // namespace tutti
