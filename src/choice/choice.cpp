#include "choice/choice.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <ranges>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "choice/select.h"
#include "choice/step_cost.h"
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

/// All bytes of a value, one value after another: different values have different texts.
template <class T>
void add(std::string& text, const T& value) {
  if constexpr (std::ranges::range<T>) {
    add(text, std::ranges::size(value));
    for (const auto& one : value) add(text, one);
  } else {
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

template <class... Values>
std::string text_of(const std::tuple<Values...>& values) {
  std::string text;
  std::apply([&text](const auto&... value) { (add(text, value), ...); }, values);
  return text;
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
  for (std::size_t width = width_first; width <= width_last; ++width) {
    by_width_[width] = &best[width]->algorithm();
    us_[width] = best[width]->us(size_of_width(static_cast<int>(width)));
  }
  fill_outside();
}

/// Sizes for which nothing is predicted are as the nearest.
void Envelope::fill_outside() {
  for (std::size_t width = 0; width < by_width_.size(); ++width) {
    const auto nearest = std::clamp<std::size_t>(width, width_first, width_last);
    by_width_[width] = by_width_[nearest];
    us_[width] = us_[nearest];
  }
}

std::string Envelope::text() const {
  std::string text;
  for (std::size_t width = width_first; width <= width_last; ++width)
    text += fmt::format("{} {} {}\n", std::size_t{1} << (width - 1), us_[width], by_width_[width]->name);
  return text;
}

std::optional<Envelope> Envelope::read(std::string_view text, const Shape& shape, Access access) {
  Envelope envelope;
  for (std::size_t width = width_first; width <= width_last; ++width) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string bytes = fmt::format("{} ", std::size_t{1} << (width - 1));
    if (!line.starts_with(bytes)) return std::nullopt;
    double us = 0;
    const char* const end = line.data() + line.size();
    const auto [rest, problem] = std::from_chars(line.data() + bytes.size(), end, us);
    if (problem != std::errc() || !std::isfinite(us) || rest == end) return std::nullopt;
    const std::string_view name(rest + 1, end);
    const bool same = width > width_first && envelope.by_width_[width - 1]->name == name;
    const Algorithm* const algorithm = same ? envelope.by_width_[width - 1] : find_algorithm(name, shape);
    if (algorithm == nullptr || (!same && !serves(*algorithm, shape, access))) return std::nullopt;
    envelope.by_width_[width] = algorithm;
    envelope.us_[width] = us;
  }
  if (!text.empty()) return std::nullopt;
  envelope.fill_outside();
  return envelope;
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
  const std::string grounds = store_.find ? text_of(key) : std::string();
  const auto text = store_.find ? store_.find(grounds) : std::nullopt;
  auto read = text ? Envelope::read(*text, any_root, access) : std::nullopt;
  auto envelope = read ? std::make_shared<const Envelope>(*std::move(read)) : nullptr;
  if (envelope == nullptr) {
    const auto all = candidates(any_root, access, forced, counts);
    envelope = std::make_shared<const Envelope>(any_root, access, all, machine, conditions);
    if (store_.keep) store_.keep(grounds, envelope->text());
  }
  made_.emplace(std::move(key), envelope);
  return envelope;
}

}  // namespace tutti
