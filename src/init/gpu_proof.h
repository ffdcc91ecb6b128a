// Tests whether the GPUs of one host can access each other's memory. Drivers, containers, virtual machines and switches
// can each prevent it, and not all of them report it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/peer_arena.h"
#include "init/peer_info.h"
#include "process/gpu_process.h"

namespace tutti {

/// One rank's test, while it joins. Its probe, the beginning of its arena, must live until all ranks have finished
/// their tests.
class GpuProof {
 public:
  /// Errors: cuda, invalid_argument.
  /// `key`: of the rank, under which others of this process find its arena.
  static Result<std::unique_ptr<GpuProof>> open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks,
                                                std::uint32_t key);

  /// To be sent to the other ranks.
  GpuInfo info() const;

  /// Maps the probe of `peer`, reads the pattern there, stores one in this rank's place and reads that back. False: the
  /// access does not work reliably.
  bool reaches(Rank peer, const GpuInfo& info, bool same_process);

  /// The arena, with those of all ranks that were reached; others may use it when all ranks have finished their tests.
  const std::shared_ptr<cuda::PeerArena>& arena() const { return arena_; }
  /// The blocks that this rank may use for kernels that meet those of other ranks.
  const std::shared_ptr<BlockBudget::Share>& blocks() const { return blocks_; }

 private:
  GpuProof(GpuProcess& process, cuda::SharedGpu gpu, Rank rank, int ranks)
      : process_(process), gpu_(std::move(gpu)), rank_(rank), ranks_(ranks) {}
  Result<void> set_up();
  bool allow(cuda::Ordinal other) const;
  Result<void> copy(std::byte* to, const std::byte* from) const;

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  int ranks_;
  std::shared_ptr<cuda::PeerArena> arena_;  // begins with a pattern, then one place per rank
  std::shared_ptr<BlockBudget::Share> blocks_;
  cuda::PinnedMemory words_;
  cuda::OwnStream stream_;
  cuda::MemoryLine line_;
};

}  // namespace tutti
