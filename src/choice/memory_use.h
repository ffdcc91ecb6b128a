// What a byte costs in a call: by how much memory the call's ranks access.
#pragma once

#include <cstddef>

#include "choice/conditions.h"
#include "choice/machine.h"
#include "plan/plan.h"

namespace tutti {

/// µs, of a byte or of a block.
struct AccessCosts {
  double read = 0, write = 0;          ///< own memory
  double far_read = 0, far_write = 0;  ///< memory that ranks pass data on in
  double pull = 0;
  AccessCosts of(double bytes) const {
    return {bytes * read, bytes * write, bytes * far_read, bytes * far_write, bytes * pull};
  }
};

/// A call of one size.
struct CallCosts {
  std::size_t tiles = 1;
  double group_bytes = 0;
  double block_bytes = 0;  ///< of one tile of a part
  double own_bytes = 0;    ///< in the buffers of a rank
  AccessCosts byte;
};

/// How much memory the ranks of an algorithm access: buffers and messages, in groups of a call.
struct MemoryUse {
  MemoryUse(Access how, int rank_count, const Machine& machine, const Conditions& conditions);

  Access access;
  int ranks;
  double crowd;                ///< ranks that share a core
  std::size_t streamed_bytes;  ///< FarRates::streamed_bytes
  int parts = 1;
  int items_max = 1;        ///< in a message
  double own_groups = 0;    ///< in the buffers of a rank, on average
  double moved_groups = 0;  ///< that the busiest rank takes from and gives to others
  double fifo_peers = 0;    ///< number of fifos of the rank that has most
  double pulling = 0;       ///< share of the ranks that pull

  /// Bytes that the busiest rank takes from others and gives to others.
  std::size_t bytes_moved(std::size_t group_bytes) const {
    return static_cast<std::size_t>(moved_groups * static_cast<double>(group_bytes));
  }
  CallCosts costs(std::size_t group_bytes, const Machine& machine, const Conditions& conditions) const;
};

}  // namespace tutti
