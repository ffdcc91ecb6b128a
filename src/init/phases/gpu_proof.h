// Tests whether the GPUs of one host can access each other's memory. Drivers, containers, virtual machines and switches
// can each prevent it, and not all of them report it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/virtual_memory.h"
#include "init/peer_info.h"
#include "process/process.h"

namespace tutti {

/// One rank's test, while it joins. Its probe, the beginning of its arena, must live until all ranks have finished
/// their tests.
class GpuProof {
 public:
  /// `name`: of the rank, for the log; `key`: of the rank, under which others of this process find its arena. Errors:
  /// cuda, invalid_argument.
  static Result<std::unique_ptr<GpuProof>> open(Process& process, std::string name, const cuda::SharedGpu& gpu,
                                                Rank rank, int ranks, std::uint32_t key);

  /// To be sent to the other ranks.
  GpuInfo info() const;

  /// Gets a descriptor from the peer's process.
  using Fetch = std::function<Result<SegmentTable::Export>(SegmentName name)>;
  /// Maps the probe of `peer`, reads the pattern there, stores one in this rank's place and reads that back. Errors:
  /// why the access does not work reliably.
  Result<void> reach(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch);

  /// The arena, with those of all ranks that were reached; others may use it when all ranks have finished their tests.
  const std::shared_ptr<cuda::PeerArena>& arena() const { return arena_; }
  /// The blocks that this rank may use for synchronising kernels.
  const std::shared_ptr<BlockBudget::Share>& blocks() const { return blocks_; }

 private:
  GpuProof(Process& process, std::string name, cuda::SharedGpu gpu, Rank rank, int ranks)
      : process_(process.gpus),
        segments_(process.memory.segments),
        log_(process.log),
        name_(std::move(name)),
        gpu_(std::move(gpu)),
        rank_(rank),
        ranks_(ranks) {}
  Result<void> set_up();
  Result<std::byte*> make_arena();
  Result<void> allow(cuda::Ordinal other) const;
  Result<std::byte*> map(Rank peer, const GpuInfo& info, bool same_process, const Fetch& fetch);
  Result<void> copy(std::byte* to, const std::byte* from) const;

  GpuProcess& process_;
  SegmentTable& segments_;
  Log& log_;
  const std::string name_;  // of the rank, for the log
  cuda::SharedGpu gpu_;
  Rank rank_;
  int ranks_;
  std::shared_ptr<cuda::PeerArena> arena_;             // begins with a pattern, then one place per rank
  std::unique_ptr<SegmentTable::Offered> descriptor_;  // of the arena; null: it is mapped by CUDA IPC
  std::uint64_t described_bytes_ = 0;
  std::shared_ptr<BlockBudget::Share> blocks_;
  cuda::PinnedMemory words_;
  cuda::OwnStream stream_;
  cuda::MemoryDescriptor line_;
};

}  // namespace tutti
