// The ranks of one communicator that share a GPU: their memory there, and a call of theirs as one kernel.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/deferred_releases.h"
#include "cuda/kernels.h"
#include "cuda/resources.h"
#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti::cuda {

struct EngineShape {
  int ranks = 1;              ///< of the communicator
  std::vector<Rank> local;    ///< those on this GPU, ascending
  int channels_max = 1;       ///< blocks that a rank may use
  std::int64_t limit_ns = 0;  ///< how long a kernel waits for a peer; 0: for ever
  bool specialised = true;    ///< false: run_plan alone, but for plans of Access::in_line
  /// Memory of plans comes from a few large pieces and is freed with the engine alone: for where streams may wait for
  /// the host for long, as the driver may have whoever allocates or frees memory wait for all streams.
  bool frees_late = false;
};

/// A rank's plan in the GPU's memory.
struct DevicePlan {
  DeviceMemory memory;  ///< unless it is the engine's
  const Action* actions = nullptr;
  const Place* places = nullptr;
  std::uint32_t action_count = 0;
  std::uint16_t place_count = 0;  ///< as in device::RankCall
  int scratch_groups = 0;
  device::Body body = device::Body::run_plan;  ///< that may run it
};

/// What all ranks of a call have in common.
struct Job {
  const Plan* plan = nullptr;  ///< any local rank's
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;        ///< elements of a group
  std::size_t input_bytes = 0;  ///< not 0: inputs are read from a copy, for plans that cannot work in place
  bool passes_only = false;     ///< parts are passes in the midst of plans, for run_plan whatever the plan
  const device::PeerBuffers* table = nullptr;  ///< as device::Call has it
};

/// What a rank of this GPU brings; in the order of EngineShape::local.
struct Part {
  Stream stream = nullptr;
  std::shared_ptr<const DevicePlan> plan;
  bool staged = false;  ///< its input is to be copied first
  std::uint32_t first_action = 0;
  std::uint32_t action_count = UINT32_MAX;  ///< that many at most
  std::byte* scratch = nullptr;             ///< null: the engine's
};

/// Kernels of an engine run one after another, each on the stream of the first rank here: ranks that all use one stream
/// need nothing beside their kernels. Used by one thread at a time, but for abort and trouble: any thread, any time.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// The largest call of a plan of Access::in_line, in bytes.
  static constexpr std::size_t one_shot_bytes_max = std::size_t{64} * 1024;

  /// Allocates all that calls need but scratch. Errors: invalid_usage (more ranks than fit the GPU), cuda.
  static Result<std::shared_ptr<Engine>> open(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
                                              std::shared_ptr<DeferredReleases> deferred);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Gpu& gpu() const { return *gpu_; }
  int channels() const { return channels_; }

  /// Waits for the copy: done once per plan. Errors: cuda.
  Result<std::shared_ptr<const DevicePlan>> upload(const Plan& plan);

  /// Queues the call behind what the ranks' streams hold now, and their streams behind it. `buffers`: of all ranks of
  /// the communicator. Nothing waits but streams. While the streams are captured, the graph keeps what it needs.
  /// Errors: invalid_usage (some streams are captured and others not, or not together), cuda.
  Result<void> launch(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers);

  /// Ends kernels that wait, soon.
  void abort();
  /// Why a kernel gave up: who waited for whom, on which channel, at which step.
  std::optional<Error> trouble() const;
  /// Whether all that was launched has ended. Errors: cuda (what it ended with).
  Result<bool> idle();

 private:
  struct Capture {
    Graph graph = nullptr;  // null: none
    std::uint64_t id = 0;
  };
  struct Launched {  // the last one, of those captured or of the others
    OwnEvent ended;
    std::uint64_t stream = 0;  // its id; handles may be those of streams that are gone
    std::uint64_t capture = 0;
    bool any = false;
  };
  struct Seat {  // of a local rank
    std::byte* area = nullptr;
    device::Link* links = nullptr;
    std::byte* scratch = nullptr;
    std::byte* staging = nullptr;
  };

  Engine(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
         std::shared_ptr<DeferredReleases> deferred);
  Result<void> set_up();
  Result<std::byte*> plan_buffer(std::size_t bytes);
  Result<void> write(Address to, const void* from, std::size_t bytes);
  Result<void> finish_setup();
  Result<Capture> capture_of(std::span<const Part> parts) const;
  Result<std::shared_ptr<const DeviceMemory>> buffer(std::shared_ptr<const DeviceMemory>& memory, std::size_t bytes);
  Result<void> make_buffers(const Job& job, std::span<const Part> parts, std::size_t group_bytes);
  Result<void> stage(const Job& job, std::span<const Part> parts, std::span<device::PeerBuffers> buffers);
  Result<void> follow(Stream stream, const OwnEvent& event) const;
  Result<void> join(std::span<const Part> parts, Launched& last, std::uint64_t capture);
  Result<void> fork(std::span<const Part> parts, Launched& last) const;
  Result<void> retain(const Capture& capture, std::span<const Part> parts);
  void keep(std::span<const Part> parts);
  void fill(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
            std::span<const device::PeerBuffers> buffers) const;
  device::Body body_of(std::span<const Part> parts) const;
  device::ErrorRecord* records(std::byte* base, std::size_t local) const;

  SharedGpu gpu_;
  std::shared_ptr<const Kernels> kernels_;
  EngineShape shape_;
  std::shared_ptr<DeferredReleases> deferred_;
  int channels_ = 1;
  std::size_t inbox_bytes_ = 0;  // one half
  DeviceMemory memory_;          // areas and links
  PinnedMemory shared_;          // the abort word, then the records of errors
  std::vector<Seat> seats_;
  std::vector<DeviceMemory> plan_buffers_;  // where it frees late; the last one is used up to:
  std::size_t plan_buffer_used_ = 0;
  std::shared_ptr<const DeviceMemory> scratch_;  // of all local ranks; graphs may keep earlier ones
  std::shared_ptr<const DeviceMemory> staging_;
  OwnStream setup_;
  std::vector<OwnEvent> ready_;  // by local rank
  Launched launched_;
  Launched captured_;
  std::vector<std::shared_ptr<const void>> in_flight_;  // what kernels that may still run use
};

}  // namespace tutti::cuda
