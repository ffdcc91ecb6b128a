// Which access to peers' data is the fastest for calls of a host's ranks, by prediction.
#pragma once

#include <bitset>
#include <cstddef>
#include <functional>
#include <memory>

#include "choice/choice.h"

namespace tutti {

/// For one collective, by size. Sizes are those by which algorithms are chosen (Envelope::at), and a size does as the
/// power of two below it.
struct AccessTable {
  /// Calls of fewer bytes are inline, wherever their buffers lie; 0: none.
  std::size_t inline_below = 0;
  /// By bit width of the size: an inline call is faster than what ordinary memory leaves.
  std::bitset<65> carries;
  /// By bit width of the size: CMA is faster than slots, for memory on pages of 4 KiB and on huge pages.
  std::bitset<65> pulls;
  std::bitset<65> pulls_huge;
};

/// Makes the envelope of the best algorithms for a shape, an access and a machine.
using MakeEnvelope =
    std::function<std::shared_ptr<const Envelope>(const Shape&, Access, const Machine&, const Conditions&)>;

/// For ranks that share memory.
/// `ordinary`: also for memory that peers cannot map.
AccessTable predict_access_table(const Shape& shape, const Machine& machine, const Conditions& conditions,
                                 bool ordinary, const MakeEnvelope& make);

}  // namespace tutti
