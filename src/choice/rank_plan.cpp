#include "choice/rank_plan.h"

#include <algorithm>

#include "base/limits.h"
#include "plan/counts.h"
#include "plan/lower.h"

namespace tutti {

bool costs_one_rank(const Algorithm& algorithm, Access access) {
  return algorithm.family->items != nullptr && (access == Access::slots || access == Access::in_line);
}

bool is_direct(const Algorithm& algorithm, const Shape& shape) {
  constexpr int few = 16;
  const Family& family = *algorithm.family;
  if (family.items == nullptr || shape.ranks <= few) return direct(algorithm.build(shape));
  return family.direct != nullptr && family.direct(positions_of(shape));
}

bool keeps_groups(const Algorithm& algorithm, const Shape& shape) {
  if (shape.collective != Collective::all_gather) return false;
  Shape own = shape;
  // Whether blocks of others ever lie elsewhere than in their places, one rank's transfers show as well as those of
  // all.
  if (algorithm.family->items != nullptr) own.only = 0;
  return keeps_groups(algorithm.build(own));
}

Plan rank_plan(const Algorithm& algorithm, const Shape& shape, Rank rank, Access access) {
  if (!costs_one_rank(algorithm, access)) return lower(algorithm.build(shape), rank, access);
  const Family& family = *algorithm.family;
  const int items = family.items(positions_of(shape), algorithm.parameter);
  Shape own = shape;
  own.only = rank;
  Plan plan = lower(algorithm.build(own), rank, access);
  plan.direct = is_direct(algorithm, shape);
  if (access == Access::slots) plan.items_max = std::min(items, limits::items_max);
  return plan;
}

}  // namespace tutti
