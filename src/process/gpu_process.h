// The GPU state of a process: the driver, each GPU in use with its kernels, and the ranks that launch together on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/system.h"
#include "cuda/deferred_releases.h"
#include "cuda/driver.h"
#include "cuda/kernels.h"
#include "cuda/launch_order.h"
#include "cuda/peer_memory.h"
#include "cuda/quiet.h"
#include "cuda/resources.h"

namespace tutti {

/// How the GPUs of a host reach each other: by kernels that wait for each other's flags, by kernels that the host lets
/// go one by one, or not. automatic: by flags where all kernels can run at the same time. apart: by flags, with a
/// launch for each rank, also of ranks that share a GPU and a process. host: from some size on; always: for every size.
enum class PeerUse { automatic, flags, apart, host, always, off };

/// What settings say about GPUs.
struct GpuSettings {
  explicit GpuSettings(const Config& config);

  int channels_max;           ///< TUTTI_MAX_CTAS
  std::size_t scratch_bytes;  ///< TUTTI_GPU_SCRATCH
  bool specialised;           ///< TUTTI_GPU_KERNELS is not run_plan
  bool staged;                ///< TUTTI_GPU_STAGED is always
  PeerUse peers;              ///< TUTTI_GPU_P2P
  bool virtual_memory;        ///< TUTTI_CUMEM_ENABLE
  bool ordered;               ///< TUTTI_LAUNCH_ORDER_IMPLICIT; never where ranks of a GPU are launched apart
  std::int64_t limit_ns;      ///< TUTTI_TIMEOUT_MS
  std::int64_t meeting_ns;    ///< TUTTI_MEET_TIMEOUT_MS
  std::string kernels_file;   ///< TUTTI_CUDA_KERNELS
  bool one_queue;             ///< CUDA_DEVICE_MAX_CONNECTIONS is 1, which the driver reads when it starts
};

/// How many blocks of waiting kernels a process may have on each of its GPUs. Kernels that wait for other processes
/// must all be on their GPUs at once, those of different communicators too: ranks may use these in different orders.
/// Thread-safe.
class BlockBudget {
 public:
  /// Blocks that are taken, as long as it lives.
  class Share {
   public:
    Share(std::shared_ptr<BlockBudget> of, cuda::Ordinal gpu, int blocks)
        : of_(std::move(of)), gpu_(gpu), blocks_(blocks) {}
    ~Share() { shrink(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    int blocks() const { return blocks_; }
    /// Gives back all but `blocks`.
    void shrink(int blocks) {
      const std::lock_guard lock(of_->mutex_);
      of_->taken_[gpu_] -= blocks_ - std::min(blocks, blocks_);
      blocks_ = std::min(blocks, blocks_);
    }

   private:
    std::shared_ptr<BlockBudget> of_;
    cuda::Ordinal gpu_;
    int blocks_;
  };

  /// At most `most`, and about a third, of the blocks that are left on a GPU that holds `all`, so that later
  /// communicators have some, too; perhaps none.
  static std::shared_ptr<Share> take(const std::shared_ptr<BlockBudget>& from, cuda::Ordinal gpu, int most, int all) {
    const std::lock_guard lock(from->mutex_);
    int& taken = from->taken_[gpu];
    constexpr int whole = 4;  // fewer are of little use
    const int left = std::max(0, all - taken);
    const int blocks = std::min({most, left, (left / 3 + whole) / whole * whole});
    taken += blocks;
    return std::make_shared<Share>(from, gpu, blocks);
  }

 private:
  std::mutex mutex_;
  std::map<cuda::Ordinal, int> taken_;
};

/// How many communicators have streams that wait for the host, and whether these hold each other up. Thread-safe.
class WaitingStreams {
 public:
  /// `one_queue`: CUDA gives all streams one queue.
  explicit WaitingStreams(bool one_queue) : one_queue_(one_queue) {}

  /// One for each communicator whose streams wait for the host, to be kept as long as it lives. Says in the log, once,
  /// that such streams hold each other up: if all have one queue, and there are several of these communicators.
  std::shared_ptr<const void> enter(Log& log, std::string_view who);

 private:
  const bool one_queue_;
  const std::shared_ptr<const int> count_ = std::make_shared<int>();
  std::atomic<bool> told_ = false;
};

class GpuProcess {
 public:
  GpuProcess(System& system, const Config& config);

  cuda::DriverSlot driver;
  const std::shared_ptr<cuda::DeferredReleases> deferred;
  const std::shared_ptr<cuda::Quiet> quiet = std::make_shared<cuda::Quiet>();
  cuda::PeerMapTable mapped;
  /// For kernels that wait for those of other processes or GPUs.
  const std::shared_ptr<BlockBudget> blocks = std::make_shared<BlockBudget>();

  /// Errors: invalid_argument (no such GPU), cuda.
  Result<cuda::SharedGpu> gpu(cuda::Ordinal ordinal);
  /// The GPU of the calling thread's current context; null if this thread does not use CUDA. Errors: cuda.
  Result<cuda::SharedGpu> current();
  /// The kernels of TUTTI_CUDA_KERNELS, or the built-in ones. Errors: cuda.
  Result<std::shared_ptr<const cuda::Kernels>> kernels(const cuda::SharedGpu& gpu);

  /// Of all kernels on that GPU that wait for those of other ranks; null: none (TUTTI_LAUNCH_ORDER_IMPLICIT). Errors:
  /// cuda.
  Result<std::shared_ptr<cuda::LaunchOrder>> launch_order(const cuda::SharedGpu& gpu);

  /// Zeroed memory of a GPU. Errors: invalid_argument (no such GPU), cuda.
  Result<std::byte*> allocate(cuda::Ordinal ordinal, std::size_t bytes);
  /// False: the memory is not from `allocate`.
  bool free(std::byte* at);

  /// Waits until `idle` says true or fails, at most that long. False: neither.
  bool await_idle(const std::function<Result<bool>()>& idle, std::int64_t longest_ns);
  /// For destructors: waits until `idle` says true or fails, at most a second. False: the GPU may still use `held`,
  /// which is then kept for ever.
  bool idle_or_keep(const std::function<Result<bool>()>& idle, const std::vector<std::shared_ptr<const void>>& held);
  /// Keeps `what` until the process ends.
  void keep(std::shared_ptr<const void> what);

  /// Objects shared by ranks of this process that have a communicator or a GPU in common.
  Directory directory;

  const GpuSettings settings;
  WaitingStreams waiting;

 private:
  System& system_;
  std::mutex mutex_;
  std::map<cuda::Ordinal, std::weak_ptr<const cuda::Gpu>> gpus_;
  std::map<cuda::Ordinal, std::weak_ptr<const cuda::Kernels>> kernels_;
  std::map<cuda::Ordinal, std::weak_ptr<cuda::LaunchOrder>> orders_;
  std::map<std::byte*, cuda::DeviceMemory> allocated_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace tutti
