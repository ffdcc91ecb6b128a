// Why a call uses the algorithm it uses, in words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "algorithms/choice.h"

namespace tutti {

/// What a choice is made from, besides the shape.
struct Grounds {
  Machine machine;
  Conditions conditions;
  std::string forced = {};     ///< TUTTI_ALGO
  bool fixed_order = false;    ///< of the reduction: what is used has been asked for
  std::string_view over = {};  ///< what carries the bytes, where "slots" would say too little
  std::string tuned = {};      ///< "the fastest in 9 trial calls: …": why it is used, where calls were tuned
};

/// A line for the call and how ranks reach each other in it, a line for each candidate with its predicted time, steps
/// and bytes, the fastest first, and a line that says which is used and why. `bytes`: of the largest buffer of one
/// rank. `used`: what the call will use. Builds every schedule: takes milliseconds.
std::string explain(const Shape& shape, Access access, std::size_t bytes, const Algorithm& used,
                    const Grounds& grounds);

}  // namespace tutti
