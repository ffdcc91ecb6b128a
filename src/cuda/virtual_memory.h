// Memory of a GPU that other processes map by a descriptor. Unlike memory exported by CUDA IPC it lives as long as any
// process has it mapped: what a peer stores after its owner has gone goes nowhere, but is no fault.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "base/unique_fd.h"
#include "cuda/peer_memory.h"

namespace tutti::cuda {

/// A mapping of such memory. No kernel that uses it may still run when it ends.
class VirtualMemory {
 public:
  VirtualMemory() = default;
  /// Whether the GPU and its driver have such memory.
  static bool is_available(const Gpu& gpu);

  struct Created;
  /// At least `bytes`, not zeroed. The context must be current. Errors: cuda.
  static Result<Created> create(const SharedGpu& gpu, std::size_t bytes);
  /// The memory behind a descriptor, of so many bytes (VirtualMemory::bytes). As create.
  static Result<VirtualMemory> open(const SharedGpu& gpu, int descriptor, std::size_t bytes);

  VirtualMemory(VirtualMemory&& other) noexcept { *this = std::move(other); }
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  ~VirtualMemory();

  std::byte* data() const { return reinterpret_cast<std::byte*>(at_); }  // NOLINT: an address of the GPU's
  std::size_t bytes() const { return bytes_; }

  /// Lets `gpu` access memory of so many bytes (all of it) that is mapped for another GPU of this process. Errors:
  /// cuda.
  static Result<void> allow(const Gpu& gpu, Address at, std::size_t bytes);

 private:
  Result<void> map(const SharedGpu& gpu, Allocated memory, std::size_t bytes);

  SharedGpu gpu_;
  Address at_ = 0;  // 0: nothing is reserved
  std::size_t bytes_ = 0;
  bool mapped_ = false;
};

struct VirtualMemory::Created {
  VirtualMemory memory;
  UniqueFd descriptor;
};

/// Memory of a rank's GPU that all other ranks of its communicator have mapped since the start.
///
/// Begins with what the start proves access by. Then follow the areas by which kernels synchronise (SyncMemory), zeroed
/// but for their slots, and then room for copies of buffers that peers have not mapped yet, or cannot map.
struct PeerArena {
  static constexpr std::size_t area_offset = 8192;

  std::variant<DeviceMemory, VirtualMemory> own;
  std::size_t copies_offset = 0;                             ///< equal on all ranks
  std::size_t bytes = 0;                                     ///< of each rank's arena, or a little less
  std::vector<std::variant<PeerMapping, VirtualMemory>> of;  ///< by rank: of other processes
  std::vector<std::byte*> at;  ///< by rank: its arena at an address of this rank's GPU; null: not reached
};

}  // namespace tutti::cuda
