// Tests whether the GPUs of one host can access each other's memory. Drivers, containers, virtual machines and switches
// can each prevent it, and not all of them report it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/peer_arena.h"
#include "init/peer_info.h"

namespace tutti {

/// One rank's test, while it joins. Its probe, the beginning of its arena, must live until all ranks have finished
/// their tests.
class GpuProof {
 public:
  /// Errors: cuda, invalid_argument.
  static Result<std::unique_ptr<GpuProof>> open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank, int ranks);

  /// To be sent to the other ranks.
  GpuInfo info() const { return {.gpu = static_cast<std::uint32_t>(gpu_->ordinal()) + 1, .probe = line_}; }

  /// Maps the probe of `peer`, reads the pattern there, stores one in this rank's place and reads that back. False: the
  /// access does not work reliably.
  bool reaches(Rank peer, const GpuInfo& info, bool same_process);

  /// The arena, with those of all ranks that were reached. Once, when all ranks have finished their tests.
  cuda::PeerArena take_arena() { return std::move(arena_); }

 private:
  GpuProof(GpuProcess& process, cuda::SharedGpu gpu, Rank rank, int ranks)
      : process_(process), gpu_(std::move(gpu)), rank_(rank) {
    arena_.of.resize(static_cast<std::size_t>(ranks));
  }
  Result<void> set_up();
  bool allow(cuda::Ordinal other) const;
  Result<void> copy(std::byte* to, const std::byte* from) const;

  GpuProcess& process_;
  cuda::SharedGpu gpu_;
  Rank rank_;
  cuda::PeerArena arena_;  // begins with a pattern, then one place per rank
  cuda::PinnedMemory words_;
  cuda::OwnStream stream_;
  cuda::MemoryLine line_;
};

}  // namespace tutti
