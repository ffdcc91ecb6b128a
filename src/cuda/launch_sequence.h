// Puts the launches of an engine one behind the other, whatever streams they are on.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/deferred_releases.h"
#include "cuda/launch_order.h"
#include "cuda/resources.h"

namespace tutti::cuda {

/// What captures the streams of a call.
struct Capture {
  Graph graph = nullptr;  ///< null: none
  std::uint64_t id = 0;

  /// Errors: invalid_usage (only some streams are captured, or by different captures), cuda.
  static Result<Capture> of(const Gpu& gpu, std::span<const Stream> streams);
  /// Makes the graph own `what` until it is destroyed; it is let go of by whoever empties `deferred` next. Errors:
  /// cuda.
  Result<void> retain(const Gpu& gpu, std::shared_ptr<DeferredReleases> deferred,
                      std::vector<std::shared_ptr<const void>> what) const;
};

/// A launch is queued on the first of its streams between enter and leave. The context must be current. Errors: cuda.
class LaunchSequence {
 public:
  LaunchSequence() = default;
  /// `streams`: of most calls. `order`: among other engines of the GPU; null: none.
  static Result<LaunchSequence> make(const SharedGpu& gpu, std::size_t streams, std::shared_ptr<LaunchOrder> order);

  /// What the first stream gets from now on follows all that the streams hold, and the launch before. The lock, which
  /// may be of nothing, is to be held until leave has returned.
  Result<std::unique_lock<std::mutex>> enter(std::span<const Stream> streams, const Capture& capture);
  /// What the streams get from now on follows what the first one holds: the launch, or what has been queued of it.
  Result<void> leave(std::span<const Stream> streams, const Capture& capture);

  /// Whether some launch was captured.
  bool has_captured() const { return captured_.any; }
  /// The last launch that was not.
  Event ended() const { return launched_.ended.get(); }

 private:
  struct Launched {  // the last captured launch, or the last other launch
    OwnEvent ended;
    std::uint64_t stream = 0;  // id of its stream: a handle may be reused after its stream is destroyed
    std::uint64_t capture = 0;
    bool any = false;
  };
  Launched& last(const Capture& capture) { return capture.graph != nullptr ? captured_ : launched_; }
  LaunchOrder* order(const Capture& capture) const { return capture.graph != nullptr ? nullptr : order_.get(); }

  SharedGpu gpu_;
  std::shared_ptr<LaunchOrder> order_;
  std::vector<OwnEvent> ready_;  // by stream of a launch
  Launched launched_;
  Launched captured_;
};

}  // namespace tutti::cuda
