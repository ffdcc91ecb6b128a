// What one rank does in each step of a schedule, counted in messages, passes and blocks.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti {

/// 0: of ranks that share memory with this one; 1: of others.
inline constexpr std::size_t distances = 2;

struct StepWork {
  /// Passes whose results or operands have a distance; local ones come first in a step.
  struct Passes {
    int count = 0;
    int reads = 0;   ///< blocks of own buffers
    int writes = 0;  ///< blocks of own buffers
    bool operator==(const Passes&) const = default;
  };
  struct Exchanged {
    int messages_out = 0, messages_in = 0;
    int blocks_out = 0;  ///< that this rank copies to others
    int merged = 0;      ///< of these: stored by the pass that made them, in an earlier step
    int blocks_in = 0;   ///< that this rank reads from others
    Passes passes;       ///< with at least one block from there
    bool waits = false;  ///< windows: for the step before, in which a peer made what is read
    bool operator==(const Exchanged&) const = default;
  };
  std::array<Exchanged, distances> with;
  Passes local;
  bool operator==(const StepWork&) const = default;
};

/// Equal steps in a row.
struct StepRun {
  StepWork work;
  int times = 0;
};

/// What `algorithm` has the only rank of `shape` do.
struct RankWork {
  std::vector<StepRun> runs;
  int parts = 1;
  int scratch_groups = 0;
};

/// Builds the schedule step by step without keeping it. `shape`: by positions. `hosts`: as in Conditions, by position.
RankWork work_of_rank(const Algorithm& algorithm, const Shape& shape, Access access, const std::vector<int>& hosts);

}  // namespace tutti
