// Reductions with a count per rank: ranks exchange blocks, then each reduces what it has got. A pre-multiplied sum
// begins with scaling what is sent.
#pragma once

#include <optional>
#include <vector>

#include "cuda/job.h"

namespace tutti::cuda {

/// Where a rank's scratch memory holds the blocks of all ranks, the partial result, and the scaled input. Each lies as
/// its result does, modulo 16, so that passes take 16 bytes at a time.
struct ReductionBlocks {
  std::size_t first = 0;    ///< offset of rank 0's block
  std::size_t stride = 0;   ///< from block to block; the partial result is behind the last one
  std::size_t scaled = 0;   ///< offset of the scaled input, behind all else
  bool brings_own = false;  ///< the rank's own block is copied there, too, as it lies differently in the input

  std::size_t at(std::size_t rank) const { return first + rank * stride; }
};

/// Scratch memory that a rank needs, wherever its buffers lie modulo 16; 0 unless it combines.
std::size_t reduction_bytes(const CollectiveJob& job, const LocalReduction& reduction, int ranks);

/// Some elements of all blocks: a launch of its own.
struct ReductionSlice {
  std::vector<Part> parts;
  std::vector<device::PeerBuffers> buffers;
  std::vector<std::vector<device::Transfer>> transfers;  ///< by part, which refers to them

  /// Elements [begin, begin + each) of each block, where it has so many.
  static ReductionSlice of(const CollectiveJob& job, Parts parts, Buffers buffers, std::span<const Rank> local,
                           std::size_t begin, std::size_t each);
};

/// A pass over memory of a local rank.
struct Pass {
  const LocalPlan& plan;
  DataType type;
  ReduceOp op;
  std::size_t count;
  std::size_t local;  ///< index of the rank
  const std::byte* input;
  std::byte* output;
  std::byte* scratch;
  Buffers buffers;
};

/// What a rank does in a launch with CollectiveJob::exchange.
struct RankReduction {
  const CollectiveJob& job;
  const Part& part;
  std::size_t local;  ///< index of the rank
  Rank rank;
  Buffers buffers;

  ReductionBlocks blocks() const;
  /// What it exchanges with each peer; what it combines goes to its blocks. Returns the end of what is written.
  device::Transfer* write_transfers(device::Transfer* to) const;
  /// Before the exchange: scales the rank's input, which lies elsewhere then. Empty: nothing does.
  std::optional<Pass> scaling(std::byte* scratch) const;
  /// Behind the exchange: combines the blocks. `sources`: by rank, to be filled.
  Pass combining(std::byte* scratch, std::span<device::PeerBuffers> sources) const;
};

}  // namespace tutti::cuda
