// How many blocks of waiting kernels a process may have on each of its GPUs. Kernels that wait for other processes must
// all be on their GPUs at once, those of different communicators too: ranks may use these in different orders.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/driver_types.h"

namespace tutti {

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

}  // namespace tutti
