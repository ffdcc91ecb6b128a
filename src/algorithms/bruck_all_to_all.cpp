// All-to-all in logarithmic steps, for blocks so short that sending some repeatedly costs less than many messages.
#include "algorithms/algorithm.h"
#include "algorithms/relay.h"

namespace tutti {
namespace {

/// Bruck: in each step a block travels one digit of its distance, written in the radix.
///
///   steps ceil(log_r n)   messages per rank and step at most r-1
///   sent per rank: as many blocks as 1 … n-1 have digits other than 0, with radix 2 about half of n in each step
///   any n ≥ 2   scratch below n blocks
///
/// Blocks wait where they arrive, so nothing is rotated before or after.
/// Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems", IEEE TPDS 1997.
LegsOf legs_of(int ranks, int radix) {
  return [ranks, radix](int distance, std::vector<Leg>& legs) {
    for (int step = 0, digit = 1; digit < ranks; ++step, digit *= radix)
      if (const int value = distance / digit % radix; value > 0)
        legs.push_back({.step = step, .distance = value * digit});
  };
}

constexpr int radices[] = {2, 4, 3};

}  // namespace

/// Other ranks' blocks wait in scratch.
const Family algorithm::bruck_all_to_all{.name = "bruck_all_to_all",
                                         .supports = supports_any_of<Collective::all_to_all>,
                                         .build = build_relay<legs_of>,
                                         .items = items_of_relay<legs_of>,
                                         .classes = Classes::one,
                                         .parameter = "radix",
                                         .values = radices};

}  // namespace tutti
