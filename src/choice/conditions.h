// The conditions under which the ranks of a communicator make their calls.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/types.h"

namespace tutti {

/// The conditions under which plans run: equal on all ranks of a communicator.
struct Conditions {
  int cores = 1;                        ///< that its ranks may run on, in total
  int channels = 2;                     ///< for collectives
  int slots = 4;                        ///< per fifo
  std::size_t slot_bytes = 128 * 1024;  ///< size of a slot
  std::vector<int> hosts = {};          ///< by rank; empty: all ranks share memory
  /// GB/s of the links from each rank to each other, by from · ranks + to, where they differ: at most so fast is a copy
  /// between the two; 0, and empty for all: as the machine's numbers say. Of more ranks than are walked through, it is
  /// left out.
  std::vector<double> pair_gbps = {};

  /// Whether two ranks do not share memory.
  bool apart(Rank one, Rank other) const {
    return !hosts.empty() && hosts[static_cast<std::size_t>(one)] != hosts[static_cast<std::size_t>(other)];
  }
  bool operator==(const Conditions&) const = default;
};

}  // namespace tutti
