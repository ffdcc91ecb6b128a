// Tests whether the GPUs of one host can access each other's memory. Drivers, containers, virtual machines and switches
// can each prevent it, and not all of them report it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/peer_arena.h"
#include "init/peer_info.h"
#include "process/process.h"

namespace tutti {

/// One rank's test, while it joins. Its probe, the beginning of its arena, must live until all ranks have finished
/// their tests.
class GpuProof {
 public:
  /// Errors: cuda, invalid_argument.
  /// `key`: of the rank, under which others of this process find its arena.
  static Result<std::unique_ptr<GpuProof>> open(Process& process, const cuda::SharedGpu& gpu, Rank rank, int ranks,
                                                std::uint32_t key);

  /// To be sent to the other ranks.
  GpuInfo info() const;

  /// Gets a descriptor from the peer's process.
  using Fetch = std::function<Result<SegmentTable::Export>(SegmentName name)>;
  /// Maps the probe of `peer`, reads the pattern there, stores one in this rank's place and reads that back. False: the
  /// access does not work reliably.
  bool reaches(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch);

  /// The arena, with those of all ranks that were reached; others may use it when all ranks have finished their tests.
  const std::shared_ptr<cuda::PeerArena>& arena() const { return arena_; }
  /// The blocks that this rank may use for kernels that meet those of other ranks.
  const std::shared_ptr<BlockBudget::Share>& blocks() const { return blocks_; }

 private:
  GpuProof(Process& process, cuda::SharedGpu gpu, Rank rank, int ranks)
      : process_(process.gpus), segments_(process.segments), gpu_(std::move(gpu)), rank_(rank), ranks_(ranks) {}
  Result<void> set_up();
  Result<std::byte*> make_arena();
  bool allow(cuda::Ordinal other) const;
  std::byte* map(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch);
  Result<void> copy(std::byte* to, const std::byte* from) const;

  GpuProcess& process_;
  SegmentTable& segments_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  int ranks_;
  std::shared_ptr<cuda::PeerArena> arena_;          // begins with a pattern, then one place per rank
  std::unique_ptr<SegmentTable::Lent> descriptor_;  // of the arena; null: it is mapped by CUDA IPC
  std::shared_ptr<BlockBudget::Share> blocks_;
  cuda::PinnedMemory words_;
  cuda::OwnStream stream_;
  cuda::MemoryLine line_;
};

}  // namespace tutti
