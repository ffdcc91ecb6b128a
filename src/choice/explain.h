// Explains why a call uses its algorithm.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "choice/choice.h"

namespace tutti {

/// The facts that a choice depends on, besides the shape.
struct Grounds {
  Machine machine;
  Conditions conditions;
  std::string forced = {};     ///< TUTTI_ALGO
  bool fixed_order = false;    ///< the communicator is deterministic: one reduction order
  std::string_view over = {};  ///< the transport, where "slots" would not be specific enough
};

/// A line for the call and its access, a line for each candidate with its predicted time, steps and bytes, the fastest
/// first, and a line with the algorithm used and the reason. `bytes`: of the largest buffer of one rank. `used`: the
/// algorithm that the call will use. Builds every schedule: takes milliseconds.
std::string explain(const Shape& shape, Access access, std::size_t bytes, const Algorithm& used,
                    const Grounds& grounds);

}  // namespace tutti
