// The other side of the BufferBoards of peers: their allocations, at addresses of this rank's GPU.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cuda/buffer_board.h"
#include "cuda/peer_memory.h"

namespace tutti::cuda {

/// Where this rank's kernels find the allocations that peers may offer them, in the GPU's memory.
class WindowTable {
 public:
  /// With nothing in it. Errors: cuda.
  static Result<std::unique_ptr<WindowTable>> make(const SharedGpu& gpu, int ranks);

  /// Kernels find the allocation of `rank` at `place` of its board there, once they have met that rank. Waits for the
  /// GPU. The context must be current. Errors: cuda.
  Result<void> set(int rank, std::uint32_t place, std::byte* at);

  /// For device::ByWindows.
  std::byte* const* data() const { return reinterpret_cast<std::byte* const*>(memory_.data()); }

 private:
  explicit WindowTable(SharedGpu gpu) : gpu_(std::move(gpu)) {}

  SharedGpu gpu_;
  OwnStream stream_;
  PinnedMemory word_;
  DeviceMemory memory_;
};

/// The driver thread maps and unmaps; other threads look up what is mapped, which never waits for the driver.
class MappedBuffers {
 public:
  struct Board {
    BufferBoard* at = nullptr;  ///< null: this rank's own
    bool same_process = false;  ///< its allocations need no mapping
  };
  /// `boards`: by rank. They and `table` must outlive the calls of follow. Kernels find what is mapped in `windows`;
  /// null: they do not look for it.
  MappedBuffers(PeerMapTable& table, SharedGpu gpu, const std::vector<Board>& boards, WindowTable* windows);

  /// Follows the changes of all boards. Returns why something could not be mapped, which its owner learns, too. The
  /// context must be current.
  std::vector<Error> follow();

  /// The buffer of `bytes` that `rank` has named, which it does only when all ranks have mapped it. Errors: remote (the
  /// name is invalid; peer set).
  Result<std::byte*> find(int rank, const SharedLocation& location, std::size_t bytes) const;

 private:
  struct Mapped {
    std::uint32_t version = 0;  // that was answered
    std::uint64_t bytes = 0;
    PeerMapping mapping;
    std::byte* at = nullptr;
  };
  struct OfRank {
    BufferBoard* board = nullptr;
    bool same_process = false;
    std::uint32_t changes = 0;  // that were followed
    std::vector<Mapped> places;
  };
  Result<void> follow(OfRank& rank, std::uint32_t place, std::uint32_t version);
  bool must_wait(const OfRank& rank, std::uint32_t place, std::uint32_t version) const;
  Result<void> map(const OfRank& rank, std::uint32_t place, Mapped& next);

  PeerMapTable& table_;
  SharedGpu gpu_;
  WindowTable* windows_;
  std::vector<OfRank> of_;    // by rank
  mutable std::mutex mutex_;  // of the places' contents
};

}  // namespace tutti::cuda
