// How a rank's GPU memory becomes accessible to other ranks, and theirs to this rank.
//
// Mapping and unmapping wait for the driver, which an application's thread may hold while it waits for a stream that
// waits for the proxy. So neither the thread that makes calls nor the proxy does it, but the driver thread: a thread
// that nobody waits for. Buffers that are not mapped everywhere yet go through the arena, or through slots where
// kernels synchronise.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "comm/membership.h"
#include "cuda/engine.h"
#include "cuda/mapped_buffers.h"
#include "cuda/shared_buffers.h"
#include "cuda/virtual_memory.h"
#include "process/process.h"

namespace tutti {

/// The driver thread's task for one rank of a communicator.
class PeerSharing final : public Task {
 public:
  /// `arena` is needed if some rank is in another process and kernels do not synchronise. `meets`: they do, and find in
  /// a table what is mapped. `members` must live until leave() has returned. The driver thread begins. Errors: system
  /// (no thread), cuda.
  static Result<std::shared_ptr<PeerSharing>> open(Process& process, const Membership& members,
                                                   std::shared_ptr<const cuda::PeerArena> arena, bool meets);

  /// The driver thread is done with it on return. What it has mapped stays until its end.
  void leave();

  // ---- The thread that makes calls ----

  cuda::SharedBuffers& shared() { return shared_; }
  std::byte* arena() const {
    return arena_ ? arena_->at[static_cast<std::size_t>(rank_)] + arena_->copies_offset : nullptr;
  }
  std::size_t arena_bytes() const { return arena_ ? arena_->bytes - arena_->copies_offset : 0; }
  /// Makes the driver thread look soon, in this process and in others.
  void hurry();
  /// From now on the driver thread looks for errors of this engine's kernels. `engine` must live until leave() has
  /// returned.
  void watch(cuda::Engine& engine) { watched_.store(&engine, std::memory_order_release); }

  /// What kernels of this rank offer to those of the others: see cuda::WindowOffer.
  struct Offered {
    std::uint64_t word = 0;
    std::optional<cuda::SharedBuffer> buffer = {};  ///< keeps the offer valid
  };
  /// Of a buffer of so many bytes. None as long as not all ranks have mapped it. The context must be current. Errors:
  /// cuda (sticky errors only).
  Result<Offered> offer(const std::byte* at, std::size_t bytes);
  /// Keeps offers valid until the engine is seen to be idle, once the kernel has been launched that they were for.
  void keep(const std::vector<std::shared_ptr<cuda::SharedBuffer>>& offers);
  std::byte* const* windows() const { return windows_->data(); }

  // ---- The proxy ----

  /// As MappedBuffers::find, also in the arena.
  Result<std::byte*> find(Rank rank, const cuda::SharedLocation& location, std::size_t bytes) const;

  // ---- Any thread; none of these waits ----

  /// The communicator fails: see SharedBuffers.
  void abort() { failed_.store(true); }
  /// What the driver thread met; empty if nothing.
  std::optional<Error> trouble() const;

  // ---- The driver thread ----

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  PeerSharing(Process& process, const Membership& members, std::shared_ptr<const cuda::PeerArena> arena,
              std::unique_ptr<cuda::WindowTable> windows);
  Result<void> look();
  Result<void> check_engine(cuda::Engine& engine);

  Process& process_;
  cuda::SharedGpu gpu_;
  const std::string name_;
  std::atomic<bool> failed_ = false;
  const Rank rank_;
  const std::shared_ptr<const cuda::PeerArena> arena_;
  const std::unique_ptr<cuda::WindowTable> windows_;  // null: kernels do not synchronise
  cuda::SharedBuffers shared_;
  cuda::MappedBuffers mapped_;
  std::atomic<cuda::Engine*> watched_ = nullptr;
  std::atomic<std::int64_t> hurried_ns_ = 0;
  std::int64_t retired_ns_ = 0;  // when freed allocations were looked for
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<cuda::SharedBuffer>> kept_;
  std::optional<Error> trouble_;
};

}  // namespace tutti
