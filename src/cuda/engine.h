// The ranks of one communicator that share a GPU: their device memory, and the launch of their calls, one kernel per
// call.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/call_writer.h"
#include "cuda/deferred_releases.h"
#include "cuda/job.h"
#include "cuda/kernel_failures.h"
#include "cuda/kernels.h"
#include "cuda/launch_memory.h"
#include "cuda/launch_sequence.h"
#include "cuda/local_links.h"
#include "cuda/plan_uploads.h"
#include "cuda/quiet.h"

namespace tutti::cuda {

/// Kernels of an engine run one after another, each on the stream of the first local rank. If all ranks use one stream,
/// no stream waits for another. One thread at a time may use an engine; failures and idle are thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Allocates all memory that calls need except scratch. Errors: invalid_usage (more ranks than fit the GPU), cuda.
  static Result<std::shared_ptr<Engine>> open(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
                                              std::shared_ptr<DeferredReleases> deferred);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// See PlanUploads. The next launch is queued behind the copy. Called once per plan. Errors: cuda.
  Result<std::shared_ptr<const DevicePlan>> upload(const Plan& plan) { return uploads_.upload(plan); }

  /// Queues the call after the work that the ranks' streams hold now; later work of these streams waits for the call.
  /// Does not wait for the GPU, except for plans that a captured call needs. If the streams are being captured, the
  /// graph keeps all objects that it needs. Errors: invalid_usage (only some streams are captured, or by different
  /// captures), cuda.
  Result<void> launch(const CollectiveJob& job, Parts parts, Buffers buffers);

  /// Whether there are areas for sends and receives: with EngineShape::areas and one local rank.
  bool serves_messages() const { return links_.message_area.slots != 0; }
  /// As launch, for a reduction with a count per rank: in several launches, each of a slice of all blocks, if their
  /// scratch memory would exceed EngineShape::scratch_bytes.
  Result<void> launch_reduction(const CollectiveJob& job, Parts parts, Buffers buffers);

  /// As launch, for sends and receives. Requires serves_messages().
  Result<void> launch_messages(const MessagesJob& job);

  /// Keeps what its kernels use as long as it lives, and graphs of its launches.
  void hold(std::shared_ptr<const void> what) { shape_.held.push_back(std::move(what)); }

  /// Whether some launch was captured.
  bool has_captured() const { return sequence_.has_captured(); }

  /// Launches kernels that do nothing but meet those of all other ranks, which must have been launched too within
  /// `limit_ns`. Requires EngineShape::areas. Once they have ended (idle), failures() say whether they met. Errors:
  /// cuda.
  Result<void> prove(std::int64_t limit_ns);

  KernelFailures& failures() { return failures_; }
  /// Whether all kernels launched have ended. Errors: cuda (the error of a kernel).
  Result<bool> idle() const;

 private:
  Engine(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
         std::shared_ptr<DeferredReleases> deferred)
      : gpu_(std::move(gpu)), kernels_(std::move(kernels)), shape_(std::move(shape)), deferred_(std::move(deferred)) {}
  Result<void> set_up();
  Result<void> make_buffers(const CollectiveJob& job, Parts parts);
  Result<void> retain(const Capture& capture, LaunchMemory::Held what);
  /// Launches between others of the engine: `queue` queues work on the first stream, all of which comes after all that
  /// the streams hold, and before all that they get later. `table`: what it reads, taken over; empty: none.
  Result<void> launch_in_order(std::span<const Stream> streams, const Capture& capture, LaunchMemory::Table& table,
                               const std::function<Result<void>()>& queue);
  Result<void> run(const CollectiveJob& job, Parts parts, std::vector<device::PeerBuffers> buffers,
                   const LaunchMemory::Table& table) const;
  Result<void> bring_inputs(const CollectiveJob& job, Parts parts, std::span<device::PeerBuffers> buffers) const;
  Result<void> combine_blocks(const CollectiveJob& job, Parts parts, Buffers buffers) const;
  Result<void> start_pass(const Pass& pass, Stream stream) const;
  /// Of an engine whose kernels wait for other ranks: see Quiet::Idle.
  bool is_quiet() const;

  SharedGpu gpu_;
  std::shared_ptr<const Kernels> kernels_;
  EngineShape shape_;
  std::shared_ptr<DeferredReleases> deferred_;
  LocalLinks links_;
  KernelFailures failures_;
  const CallWriter calls_{shape_, links_, failures_};
  PlanUploads uploads_;
  LaunchSequence sequence_;
  LaunchMemory memory_;
  const std::shared_ptr<const int> graphs_ = std::make_shared<int>();  // kept by each graph with a call of ours
  Quiet::Watch watch_;                                                 // asks the above
};

}  // namespace tutti::cuda
