// The owner's side of a BufferBoard: which allocations of this rank the other ranks have mapped.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/buffer_board.h"
#include "cuda/peer_memory.h"

namespace tutti::cuda {

/// A buffer in an offered allocation, which is not withdrawn as long as this lives.
struct SharedBuffer {
  struct EndUse {
    std::shared_ptr<std::atomic<int>> users;
    void operator()(std::atomic<int>* of) const { of->fetch_sub(1); }
  };
  SharedLocation location;
  std::unique_ptr<std::atomic<int>, EndUse> use;
};

/// One thread makes calls and another, the driver thread, retires; both may be inside at once.
class SharedBuffers {
 public:
  /// `audience`: how many ranks answer. `failed`: nothing is withdrawn any more, as peers may still
  /// access buffers of calls that have ended here; it must be set before such a call ends. `board` and `failed` must
  /// outlive this object.
  SharedBuffers(SharedGpu gpu, BufferBoard& board, std::uint32_t audience, const std::atomic<bool>& failed);

  // ---- The thread that makes calls; the context must be current ----

  /// Offers the allocation with the buffer of `bytes` at `at`, unless it is offered already. Nothing: it cannot be
  /// exported (`possible` is then false), or no place is free now; try again later. Errors: cuda (sticky errors only).
  Result<std::optional<SharedBuffer>> offer(const std::byte* at, std::size_t bytes, bool& possible);
  /// Whether all other ranks have mapped the buffer's allocation.
  bool mapped(const SharedBuffer& buffer) const {
    return answered(buffer.location.place) && !refused(buffer.location.place);
  }
  /// Whether one of them cannot.
  bool refused(const SharedBuffer& buffer) const {
    return answered(buffer.location.place) && refused(buffer.location.place);
  }

  // ---- The driver thread; the context must be current ----

  /// Withdraws allocations that were freed, or that a peer could not map. Errors: cuda (sticky errors only).
  Result<void> retire_freed();
  /// Whether some change has not been answered by all.
  bool waits() const;

 private:
  struct Own {
    Allocation allocation;  // base 0: the place is free
    std::shared_ptr<std::atomic<int>> users;
    std::uint64_t used = 0;  // the latest use
  };
  bool answered(std::uint32_t place) const;
  bool refused(std::uint32_t place) const;
  bool unused(std::uint32_t place) const;
  std::optional<std::uint32_t> free_place();
  void withdraw(std::uint32_t place);
  void change(std::uint32_t place);
  SharedBuffer use(std::uint32_t place, const std::byte* at);

  SharedGpu gpu_;
  BufferBoard& board_;
  const std::uint32_t audience_;
  const std::atomic<bool>& failed_;
  mutable std::mutex mutex_;
  std::array<Own, BufferBoard::places_max> own_;
  std::array<Allocation, 64> closed_;  // the latest that the driver cannot export, to be asked for once
  std::size_t next_closed_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace tutti::cuda
