// Which access to peers' data is the fastest for calls of a host's ranks, by prediction.
#pragma once

#include <bitset>
#include <cstddef>

#include "algorithms/choice.h"

namespace tutti {

/// For one collective, by size. Sizes are those by which algorithms are chosen (Envelope::at), and a size does as the
/// power of two below it.
struct Ways {
  /// Calls of fewer bytes are inline, wherever their buffers lie; 0: none.
  std::size_t inline_below = 0;
  /// By bit width of the size: an inline call is faster than what ordinary memory leaves.
  std::bitset<65> carries;
  /// By bit width of the size: CMA is faster than slots, for memory on pages of 4 KiB and on huge pages.
  std::bitset<65> pulls;
  std::bitset<65> pulls_huge;
};

/// The envelopes of the collective's best algorithms; null where an access is not available to it.
struct WayEnvelopes {
  const Envelope* in_line = nullptr;
  const Envelope* mapped = nullptr;
  const Envelope* cma = nullptr;
  const Envelope* cma_huge = nullptr;
  const Envelope* slots = nullptr;
};

Ways choose_ways(const WayEnvelopes& envelopes);

/// The shape by which ways are chosen: of more ranks than are modelled, as many as are.
Shape shape_for_ways(const Shape& shape);
Conditions conditions_for_ways(const Shape& shape, Conditions conditions);

}  // namespace tutti
