// The ranks of one communicator that share a GPU: their device memory, and the launch of their calls, one kernel per
// call.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/areas.h"
#include "cuda/deferred_releases.h"
#include "cuda/kernels.h"
#include "cuda/launch_order.h"
#include "cuda/quiet.h"
#include "cuda/resources.h"
#include "kernels/area.h"
#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti::cuda {

struct EngineShape {
  int ranks = 1;                  ///< of the communicator
  std::vector<Rank> local;        ///< the ranks on this GPU, ascending
  int channels_max = 1;           ///< blocks that a rank may use
  std::int64_t limit_ns = 0;      ///< how long a kernel waits for a peer; 0: for ever
  std::size_t scratch_bytes = 0;  ///< for reductions with a count per rank, about; equal on all ranks
  bool specialised = true;        ///< false: only run_plan, except for plans of Access::in_line
  /// Plans are uploaded into a few large allocations that are freed only with the engine. For engines whose streams may
  /// wait long for the host: the driver may make a thread that allocates or frees memory wait for all streams.
  bool frees_late = false;
  std::shared_ptr<LaunchOrder> order = {};  ///< among other engines of the GPU; null: none
  /// By rank of the communicator, where some are elsewhere: their areas (see SyncMemory) at addresses of this GPU,
  /// zeroed before any of them begins. Empty: all ranks are local, or kernels meet none; the engine makes the areas.
  std::vector<std::byte*> areas = {};
  std::vector<std::shared_ptr<const void>> held = {};  ///< what the areas lie in, and windows
};

/// A rank's plan in the GPU's memory.
struct DevicePlan {
  DeviceMemory memory;  ///< empty if the plan lies in the engine's memory
  const Action* actions = nullptr;
  const Place* places = nullptr;
  std::uint32_t action_count = 0;
  std::uint16_t place_count = 0;  ///< as in device::RankCall
  int scratch_groups = 0;
  device::Body body = device::Body::run_plan;  ///< the kernel that runs the plan
};

/// A plan of passes, and its copy in the GPU's memory.
struct LocalPlan {
  const Plan* plan = nullptr;  ///< null: none
  std::shared_ptr<const DevicePlan> uploaded;
};

/// What a rank does with its own memory in a reduction with a count per rank, besides the exchange of blocks.
struct LocalReduction {
  std::size_t count = 0;           ///< elements of the rank's result
  std::size_t largest = 0;         ///< of any rank's result; equal on all ranks
  std::size_t own_at = 0;          ///< where its own contribution to that begins in its input, in elements
  std::size_t input_elements = 0;  ///< from the beginning of the input to the end of the last block
  LocalPlan combine;
  LocalPlan scale;
};

/// The part of a call that is the same on all ranks.
struct Job {
  const Plan* plan = nullptr;  ///< any local rank's
  /// Through windows, in place of `plan`, which goes through slots: where all ranks offer their buffers. Null: none.
  const Plan* windows = nullptr;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;                       ///< elements of a group
  bool passes_only = false;                    ///< each part is a range of passes of a plan; run_plan runs it
  const device::PeerBuffers* table = nullptr;  ///< see device::Call
  /// What all ranks must have equal, where some are elsewhere, given the channels that the engine chooses.
  std::function<std::uint64_t(std::uint32_t channels)> signature = {};
  std::int64_t limit_ns = 0;  ///< in place of EngineShape's; 0: that
  bool exchange = false;      ///< `plan` is empty; each part has transfers, and in reductions `reduction`
};

/// The sends and receives of a rank that is alone in its engine.
struct MessagesJob {
  std::span<const Stream> streams;            ///< all different, not empty; the kernel runs on the first
  std::span<const device::Message> messages;  ///< by queue (Message::queue), none to or from the rank itself
  /// Copies on this GPU.
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
  };
  std::span<const Copy> copies;
};

/// What a rank offers to the kernels of the other ranks.
struct WindowOffer {
  std::uint64_t input = device::Offer::none;
  std::uint64_t output = device::Offer::none;
  std::byte* const* mapped = nullptr;     ///< WindowTable::data
  std::shared_ptr<const void> held = {};  ///< by the graph, if the call is captured: keeps the offer valid
};

/// One rank's part of a call, in the order of EngineShape::local.
struct Part {
  Stream stream = nullptr;
  std::shared_ptr<const DevicePlan> plan;
  std::size_t staged = 0;  ///< bytes of the rank's input, which is copied first; 0: it is not
  std::uint32_t first_action = 0;
  std::uint32_t action_count = UINT32_MAX;  ///< at most
  std::byte* scratch = nullptr;             ///< null: use the engine's scratch
  /// With Job::exchange: by peer. In reductions the engine says where what they receive goes.
  std::span<const device::Transfer> transfers = {};
  LocalReduction reduction = {};
  /// With Job::windows.
  std::shared_ptr<const DevicePlan> windows = {};
  WindowOffer offer = {};
};

/// Kernels of an engine run one after another, each on the stream of the first local rank. If all ranks use one stream,
/// no stream waits for another. One thread at a time may use an engine; abort, trouble, difference and idle are
/// thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Allocates all memory that calls need except scratch. Errors: invalid_usage (more ranks than fit the GPU), cuda.
  static Result<std::shared_ptr<Engine>> open(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
                                              std::shared_ptr<DeferredReleases> deferred);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Gpu& gpu() const { return *gpu_; }
  int channels() const { return channels_; }

  /// Copies the plan to the GPU. With frees_late it does not wait for the copy, behind which the next launch is queued.
  /// Called once per plan. Errors: cuda.
  Result<std::shared_ptr<const DevicePlan>> upload(const Plan& plan);

  /// Queues the call after the work that the ranks' streams hold now; later work of these streams waits for the call.
  /// `buffers`: of all ranks of the communicator. Does not wait for the GPU, except for plans that a captured call
  /// needs. If the streams are being captured, the graph keeps all objects that it needs. Errors: invalid_usage (only
  /// some streams are captured, or by different captures), cuda.
  Result<void> launch(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers);

  /// Whether there are areas for sends and receives: with EngineShape::areas and one local rank.
  bool serves_messages() const { return message_area_.slots != 0; }
  /// As launch, for a reduction with a count per rank: in several launches, each of a slice of all blocks, if their
  /// scratch memory would exceed EngineShape::scratch_bytes.
  Result<void> launch_reduction(const Job& job, std::span<const Part> parts,
                                std::span<const device::PeerBuffers> buffers);

  /// As launch, for sends and receives. Requires serves_messages().
  Result<void> launch_messages(const MessagesJob& job);

  /// Keeps what its kernels use as long as it lives, and graphs of its launches.
  void hold(std::shared_ptr<const void> what) { shape_.held.push_back(std::move(what)); }

  /// Whether some launch was captured.
  bool has_captured() const { return captured_.any; }

  /// Makes waiting kernels give up soon.
  void abort();
  /// Some ranks make no calls any more, though others may: makes kernels give up that wait for long
  /// (device::AbortWord::some_gone).
  void say_some_gone();
  /// Launches kernels that do nothing but meet those of all other ranks, which must have been launched too within
  /// `limit_ns`. Requires EngineShape::areas. Once they have ended (idle), trouble() says whether they met. Errors:
  /// cuda.
  Result<void> prove(std::int64_t limit_ns);

  /// Why a kernel gave up: which rank waited for which peer, on which channel, at which step. Empty if none did.
  std::optional<Error> trouble() const;
  /// Two ranks whose calls differ, found by the kernel of one of them.
  struct Difference {
    Rank rank = 0;
    Rank peer = 0;
    std::uint64_t own = 0;  ///< Job::signature
    std::uint64_t theirs = 0;
  };
  std::optional<Difference> difference() const;
  /// Whether all kernels launched have ended. Errors: cuda (the error of a kernel).
  Result<bool> idle();

 private:
  struct Capture {
    Graph graph = nullptr;  // null: none
    std::uint64_t id = 0;
  };
  struct Launched {  // the last captured launch, or the last other launch
    OwnEvent ended;
    std::uint64_t stream = 0;  // id of its stream: a handle may be reused after its stream is destroyed
    std::uint64_t capture = 0;
    bool any = false;
  };
  struct Table {  // of transfers or messages, in pinned memory
    std::shared_ptr<const PinnedMemory> memory;
    OwnEvent ended;  // the kernel that reads it; none in a graph, which keeps the memory
  };
  struct LocalRank {
    device::Link* links = nullptr;
    device::Link* message_links = nullptr;  // null unless ranks are elsewhere
    std::byte* scratch = nullptr;
    std::byte* staging = nullptr;
  };

  Engine(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
         std::shared_ptr<DeferredReleases> deferred);
  Result<void> set_up();
  struct PlanSlice {
    std::byte* on_gpu = nullptr;
    std::byte* on_host = nullptr;  ///< pinned, from where it is copied
  };
  Result<PlanSlice> plan_buffer(std::size_t bytes);
  Result<void> follow_uploads(Stream stream, bool captured);
  Result<void> write_links(std::size_t local, const device::Area& area, std::span<std::byte* const> areas,
                           device::Link* to);
  Result<Capture> capture_of(std::span<const Stream> streams) const;
  Result<void> enlarge(std::shared_ptr<const DeviceMemory>& memory, std::size_t bytes);
  Result<void> make_buffers(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers);
  struct Blocks;
  Blocks blocks_of(const Job& job, const Part& part, const device::PeerBuffers& own) const;
  std::size_t reduction_bytes(const Job& job, const Part& part, const device::PeerBuffers& own) const;
  Result<void> scale_inputs(const Job& job, std::span<const Part> parts, std::span<device::PeerBuffers> buffers) const;
  Result<void> combine_blocks(const Job& job, std::span<const Part> parts,
                              std::span<const device::PeerBuffers> buffers) const;
  struct Pass;
  Result<void> start_pass(const Pass& pass, Stream stream) const;
  Result<void> stage(std::span<const Part> parts, std::span<device::PeerBuffers> buffers);
  Result<void> join(std::span<const Stream> streams, Launched& last, std::uint64_t capture);
  Result<void> fork(std::span<const Stream> streams, Launched& last) const;
  /// Launches between others of the engine: `queue` queues work on the first stream, all of which comes after all that
  /// the streams hold, and before all that they get later. `table`: what it reads, taken
  /// over; empty: none.
  Result<void> launch_in_order(std::span<const Stream> streams, const Capture& capture, Table& table,
                               const std::function<Result<void>()>& queue);
  Result<void> retain(const Capture& capture, std::vector<std::shared_ptr<const void>> what);
  void keep(std::span<const Part> parts);
  Result<Table> take_table(std::size_t bytes, bool captured);
  void write_transfers(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers,
                       const Table& table) const;
  void fill_common(device::Call& call, const device::Area& area) const;
  Result<void> start(Function function, device::Call& call, unsigned threads, Stream stream,
                     bool together = false) const;
  Result<void> run(const Job& job, std::span<const Part> parts, std::vector<device::PeerBuffers> buffers,
                   const Table& table);
  std::size_t fill_windows(device::Call& call, const Job& job, std::span<const Part> parts) const;
  void fill(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
            std::span<const device::PeerBuffers> buffers) const;
  device::Body body_of(std::span<const Part> parts) const;
  device::ErrorRecord* records(std::byte* base, std::size_t local) const;
  bool synchronises() const { return !shape_.areas.empty(); }
  /// Of an engine whose kernels wait for other ranks: see Quiet::Idle.
  bool is_quiet() const;
  static constexpr int slices_max = 8;  // of a reduction: each needs a table
  static constexpr std::size_t channel_bytes_min = 16 * 1024;
  static constexpr std::size_t records_offset = 128;  // in shared_: the abort word has a cache line to itself
  struct Found {
    const device::ErrorRecord* record = nullptr;  // null: none
    std::uint32_t state = 0;
    Rank rank = 0;
    int channel = 0;
  };
  Found worst_record() const;
  static Error different_counts(const Found& found);

  SharedGpu gpu_;
  std::shared_ptr<const Kernels> kernels_;
  EngineShape shape_;
  std::shared_ptr<DeferredReleases> deferred_;
  int channels_ = 1;
  device::Area area_;
  device::Area message_area_{.channels = 0};  // no links
  DeviceMemory memory_;                       // links, and the areas unless EngineShape has them
  PinnedMemory shared_;                       // the abort word, then the error records
  std::vector<LocalRank> local_ranks_;
  struct PlanBuffer {
    DeviceMemory memory;
    PinnedMemory mirror;  // the same bytes
  };
  std::vector<PlanBuffer> plan_buffers_;  // with frees_late; the last one is used up to plan_buffer_used_
  std::size_t plan_buffer_used_ = 0;
  OwnEvent uploaded_;  // the last plan
  bool uploads_pending_ = false;
  std::shared_ptr<const DeviceMemory> scratch_;  // of all local ranks; graphs may hold earlier allocations
  std::shared_ptr<const DeviceMemory> staging_;
  OwnStream setup_;
  std::vector<Table> tables_;    // the oldest first
  std::vector<OwnEvent> ready_;  // by stream of a launch
  Launched launched_;
  Launched captured_;
  std::vector<std::shared_ptr<const void>> in_flight_;                 // objects that running kernels may use
  const std::shared_ptr<const int> graphs_ = std::make_shared<int>();  // kept by each graph with a call of ours
  Quiet::Watch watch_;
};

}  // namespace tutti::cuda
