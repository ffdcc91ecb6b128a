// The other side of the BufferBoards of peers: their allocations, as mapped in this process.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/buffer_board.h"
#include "cuda/peer_memory.h"

namespace tutti::cuda {

/// The janitor maps and unmaps; other threads look up what is mapped, which never waits for the driver.
class MappedBuffers {
 public:
  /// `boards`: by rank; null: a rank of this process. They and `table` must outlive the calls of follow.
  MappedBuffers(PeerMapTable& table, SharedGpu gpu, const std::vector<BufferBoard*>& boards);

  /// Follows the changes of all boards. Returns why something could not be mapped, which its owner learns, too. The
  /// context must be current.
  std::vector<Error> follow();

  /// The buffer of `bytes` that `rank` has named, which it does only when all ranks have mapped it. Errors: remote (the
  /// name is invalid; peer set).
  Result<std::byte*> find(int rank, const SharedSpot& spot, std::size_t bytes) const;

 private:
  struct Mapped {
    std::uint32_t version = 0;  // that was answered
    std::uint64_t bytes = 0;
    PeerMapping mapping;
  };
  struct OfRank {
    BufferBoard* board = nullptr;
    std::uint32_t changes = 0;  // that were followed
    std::vector<Mapped> places;
  };
  Result<void> follow(OfRank& rank, std::uint32_t place, std::uint32_t version);

  PeerMapTable& table_;
  SharedGpu gpu_;
  std::vector<OfRank> of_;    // by rank
  mutable std::mutex mutex_;  // of the places' contents
};

}  // namespace tutti::cuda
