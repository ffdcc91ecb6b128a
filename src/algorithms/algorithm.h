// An algorithm is data: a pure function from the shape of a call to its schedule.
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"
#include "plan/schedule.h"

namespace tutti {

struct Algorithm {
  std::string_view name;                 ///< as in TUTTI_ALGO: "ring"
  bool (*supports)(const Shape& shape);  ///< false: build must not be called
  Schedule (*build)(const Shape& shape);
  /// Besides fifos, which carry everything: what lowers_to says of all its schedules, without building them.
  bool (*carried_by)(Collective collective, Reach reach) = nullptr;
};

namespace algorithm {
#define ALGORITHM(x) extern const Algorithm x;
#include "algorithms/list.inc"
#undef ALGORITHM
}  // namespace algorithm

/// All of them, in the order of list.inc.
std::span<const Algorithm* const> algorithms();

/// By name, for a collective it supports at this shape; nullptr if there is none.
const Algorithm* find_algorithm(std::string_view name, const Shape& shape);

/// True if `algorithm` may serve calls of that shape and reach.
bool serves(const Algorithm& algorithm, const Shape& shape, Reach reach);

}  // namespace tutti
