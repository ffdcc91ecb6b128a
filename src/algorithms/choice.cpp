#include "algorithms/choice.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "algorithms/select.h"
#include "algorithms/step_cost.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {
namespace {

constexpr int width_first = 5, width_last = 31;  // 16 bytes to 1 GiB
// a later candidate is chosen only if it takes less than this fraction of an earlier one's time
constexpr double clearly = 0.99;
constexpr std::size_t envelopes_max = 1024;

/// A candidate, with the plans of all ranks if they are few.
class Built {
 public:
  Built(const Algorithm& algorithm, const Shape& shape, Access access, const Machine& machine,
        const Conditions& conditions)
      : algorithm_(algorithm) {
    if (shape.ranks > walked_ranks_max) {
      by_steps_.emplace(algorithm, shape, access, machine, conditions);
      steps_ = by_steps_->steps();
      return;
    }
    const Schedule schedule = algorithm.build(shape);
    steps_ = schedule.steps();
    plans_ = lower_all(schedule, access);
    for (Plan& plan : plans_) plan = fuse(std::move(plan), conditions.slots);
    by_plans_.emplace(plans_, machine, conditions);
  }
  Built(const Built&) = delete;
  Built& operator=(const Built&) = delete;

  double us(std::size_t group_bytes, double bound_us = std::numeric_limits<double>::infinity()) {
    return by_plans_ ? by_plans_->us(group_bytes, bound_us) : by_steps_->us(group_bytes, bound_us);
  }
  Prediction predict(std::size_t group_bytes) {
    return {.algorithm = &algorithm_,
            .us = us(group_bytes),
            .steps = steps_,
            .bytes = by_plans_ ? by_plans_->bytes_moved(group_bytes) : by_steps_->bytes_moved(group_bytes)};
  }
  const Algorithm& algorithm() const { return algorithm_; }

 private:
  const Algorithm& algorithm_;
  int steps_ = 0;
  std::vector<Plan> plans_;
  std::optional<Cost> by_plans_;
  std::optional<StepCost> by_steps_;
};

/// True if not even a prediction is made, as it would take the work of all of many ranks.
bool costs_all_ranks(const Algorithm& algorithm, const Shape& shape) {
  return algorithm.family->items == nullptr && shape.ranks > whole_ranks_max;
}

using AllBuilt = std::vector<std::unique_ptr<Built>>;

std::size_t group_bytes(const Shape& shape, std::size_t bytes) {
  return bytes /
         static_cast<std::size_t>(std::max(
             input_groups(shape.collective, shape.ranks, rooted(shape.collective) ? shape.root : 0, shape.root), 1));
}

template <class Chosen>
Built* fastest(const AllBuilt& all, std::size_t size, Chosen&& among) {
  Built* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& built : all) {
    if (!among(*built)) continue;
    const double bound = best == nullptr ? least : clearly * least;
    const double us = built->us(size, bound);
    if (best != nullptr && us >= bound) continue;
    best = built.get();
    least = us;
  }
  return best;
}

}  // namespace

std::vector<Prediction> predictions(const Shape& shape, Access access, std::size_t bytes,
                                    std::span<const Algorithm* const> candidates, const Machine& machine,
                                    const Conditions& conditions) {
  std::vector<Prediction> all;
  for (const Algorithm* const algorithm : candidates)
    all.push_back(Built(*algorithm, shape, access, machine, conditions).predict(group_bytes(shape, bytes)));
  std::ranges::stable_sort(all, {}, &Prediction::us);
  return all;
}

Envelope::Envelope(const Shape& shape, Access access, std::span<const Algorithm* const> candidates,
                   const Machine& machine, const Conditions& conditions) {
  assert(!candidates.empty());
  by_width_.fill(candidates[0]);
  if (candidates.size() == 1 && costs_all_ranks(*candidates[0], shape)) return;
  AllBuilt all;
  for (const Algorithm* const algorithm : candidates)
    all.push_back(std::make_unique<Built>(*algorithm, shape, access, machine, conditions));

  const auto size_of_width = [&](int width) { return group_bytes(shape, std::size_t{1} << (width - 1)); };
  std::array<Built*, 65> best{};
  for (int width = width_first; width <= width_last; width += 2)
    best[static_cast<std::size_t>(width)] = fastest(all, size_of_width(width), [](const Built&) { return true; });
  for (std::size_t width = width_first + 1; width < width_last; width += 2) {
    Built* const below = best[width - 1];
    Built* const above = best[width + 1];
    best[width] = below == above ? below
                                 : fastest(all, size_of_width(static_cast<int>(width)),
                                           [&](const Built& built) { return &built == below || &built == above; });
  }
  std::array<double, 65> us{};
  for (std::size_t width = width_first; width <= width_last; ++width)
    us[width] = best[width]->us(size_of_width(static_cast<int>(width)));
  for (std::size_t width = 0; width < by_width_.size(); ++width) {
    const auto nearest = std::clamp<std::size_t>(width, width_first, width_last);
    by_width_[width] = &best[nearest]->algorithm();
    us_[width] = us[nearest];
  }
}

bool is_modelled(const Shape& shape, Access access) {
  return shape.ranks > 1 && access != Access::in_line;
}

std::shared_ptr<const Envelope> Envelopes::of(const Shape& shape, Access access, std::string_view forced,
                                              const Machine& machine, const Conditions& conditions, bool counts) {
  Key key{shape.collective, shape.ranks,           shape.levels,      shape.order,          shape.rings,
          access,           std::string(forced),   machine.numbers(), conditions.cores,     conditions.channels,
          conditions.slots, conditions.slot_bytes, conditions.hosts,  conditions.pair_gbps, counts};
  const std::lock_guard lock(mutex_);
  if (const auto known = made_.find(key); known != made_.end()) return known->second;
  if (made_.size() == envelopes_max) made_.clear();
  Shape any_root = shape;
  any_root.root = 0;
  const auto all = counts ? candidates_for_counts(any_root, access, forced) : candidates(any_root, access, forced);
  auto envelope = std::make_shared<const Envelope>(any_root, access, all, machine, conditions);
  made_.emplace(std::move(key), envelope);
  return envelope;
}

}  // namespace tutti
