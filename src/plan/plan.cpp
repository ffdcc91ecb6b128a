// How one call's elements are divided into parts and tiles.
#include "plan/plan.h"

#include <algorithm>
#include <cassert>

#include "base/limits.h"

namespace tutti {
namespace {

constexpr std::size_t large_part_bytes = 4096;  // from this size on, parts begin at cache lines
constexpr std::size_t item_alignment = 16;      // of the items in a message, so that a pass may use vectors

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}
constexpr std::size_t divide_up(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

}  // namespace

std::string_view name(Access access) {
  static constexpr std::string_view names[] = {"inline", "mapped", "cma", "slots"};
  return names[static_cast<int>(access)];
}

bool writes_results(const Plan& plan, const Action& action) {
  const auto result = [](const Place& p) { return p.where == Where::output || p.where == Where::peer_output; };
  return (action.verb == Verb::copy || action.last != 0) && std::ranges::all_of(plan.destinations(action), result);
}

bool makes_pulled_sums(const Plan& plan, const Action& action) {
  return plan.access == Access::cma && plan.collective == Collective::all_reduce && action.verb == Verb::reduce &&
         writes_results(plan, action);
}

Split::Split(std::size_t count, std::size_t element_bytes, int parts)
    : count_(count), element_bytes_(element_bytes), parts_(static_cast<std::size_t>(parts)) {
  assert(element_bytes > 0 && parts > 0);
  if (count / parts_ * element_bytes >= large_part_bytes)
    unit_ = std::max<std::size_t>(1, limits::line_bytes / element_bytes);
  stride_ = round_up(part(0).count * element_bytes_, item_alignment);  // no part is larger than the first
}

void Split::tile(std::size_t slot_bytes, int items) {
  const std::size_t largest = part(0).count;
  if (largest == 0) return;
  const std::size_t item_bytes =
      slot_bytes / static_cast<std::size_t>(std::max(items, 1)) / item_alignment * item_alignment;
  std::size_t most = item_bytes / element_bytes_;
  assert(most > 0 && "a slot must hold an element of each item");
  if (most >= unit_) most = most / unit_ * unit_;

  // Equal tiles: a short last one would leave its channel idle.
  tiles_ = divide_up(largest, most);
  tile_elements_ = divide_up(largest, tiles_);
  if (most >= unit_) tile_elements_ = round_up(tile_elements_, unit_);
  tiles_ = divide_up(largest, tile_elements_);
  stride_ = round_up(std::min(tile_elements_, largest) * element_bytes_, item_alignment);
}

Range Split::part(int part) const {
  const auto p = static_cast<std::size_t>(part);
  assert(p < parts_);
  const std::size_t units = divide_up(count_, unit_);
  const auto boundary = [&](std::size_t at) {
    return std::min(count_, (at * (units / parts_) + std::min(at, units % parts_)) * unit_);
  };
  return {.begin = boundary(p), .count = boundary(p + 1) - boundary(p)};
}

Range Split::tile_of(int part, std::size_t tile) const {
  const Range whole = this->part(part);
  if (tile_elements_ == 0) return whole;
  const std::size_t skipped = std::min(whole.count, tile * tile_elements_);
  return {.begin = whole.begin + skipped, .count = std::min(tile_elements_, whole.count - skipped)};
}

Range Split::tile_of_group(std::size_t count, std::size_t tile) const {
  assert(parts_ == 1 && count <= count_);
  if (tile_elements_ == 0) return {.begin = 0, .count = count};
  const std::size_t skipped = std::min(count, tile * tile_elements_);
  return {.begin = skipped, .count = std::min(tile_elements_, count - skipped)};
}

}  // namespace tutti
