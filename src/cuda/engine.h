// The ranks of one communicator that share a GPU: their device memory, and the launch of their calls, one kernel per
// call.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/deferred_releases.h"
#include "cuda/kernels.h"
#include "cuda/launch_order.h"
#include "cuda/resources.h"
#include "kernels/area.h"
#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti::cuda {

struct EngineShape {
  int ranks = 1;              ///< of the communicator
  std::vector<Rank> local;    ///< the ranks on this GPU, ascending
  int channels_max = 1;       ///< blocks that a rank may use
  std::int64_t limit_ns = 0;  ///< how long a kernel waits for a peer; 0: for ever
  bool specialised = true;    ///< false: only run_plan, except for plans of Access::in_line
  /// Plans are uploaded into a few large allocations that are freed only with the engine. For engines whose streams may
  /// wait long for the host: the driver may make a thread that allocates or frees memory wait for all streams.
  bool frees_late = false;
  std::shared_ptr<LaunchOrder> order = {};  ///< among other engines of the GPU; null: none
  /// By rank of the communicator, where some are elsewhere: their areas (see areas_for) at addresses of this GPU,
  /// zeroed before any of them begins. Empty: all ranks are local, or kernels meet none; the engine makes the areas.
  std::vector<std::byte*> areas = {};
  std::vector<std::shared_ptr<const void>> held = {};  ///< what the areas lie in, and windows
};

/// The memory by which the kernels of ranks meet, laid out for so many channels. `apart`: some ranks are in other
/// launches, so there are slots, of as many bytes as there is room for.
device::Area areas_for(int ranks, int channels, bool apart);

/// Messages that a ring of slots holds.
inline constexpr int ring_slots = 4;

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
  bool exchange = false;      ///< `plan` is empty; each part has transfers
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
  /// With Job::exchange: by peer.
  std::span<const device::Transfer> transfers = {};
  /// With Job::windows.
  std::shared_ptr<const DevicePlan> windows = {};
  WindowOffer offer = {};
};

/// Kernels of an engine run one after another, each on the stream of the first local rank. If all ranks use one stream,
/// no stream waits for another. One thread at a time may use an engine; abort, trouble, difference and idle are
/// thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// A plan of Access::in_line serves calls of fewer bytes. Between launches it is the fastest for longer, as all other
  /// plans meet twice, until what all ranks store for all others takes more time. Measured on an H100.
  static constexpr std::size_t one_shot_bytes_max(int ranks, bool apart) {
    constexpr std::size_t least = std::size_t{64} * 1024, of_all = std::size_t{1} << 20;
    return apart ? std::max(least, std::bit_floor(of_all / static_cast<std::size_t>(ranks))) : least;
  }

  /// Allocates all memory that calls need except scratch. Errors: invalid_usage (more ranks than fit the GPU), cuda.
  static Result<std::shared_ptr<Engine>> open(SharedGpu gpu, std::shared_ptr<const Kernels> kernels, EngineShape shape,
                                              std::shared_ptr<DeferredReleases> deferred);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Gpu& gpu() const { return *gpu_; }
  int channels() const { return channels_; }

  /// Copies the plan to the GPU and waits for the copy. Called once per plan. Errors: cuda.
  Result<std::shared_ptr<const DevicePlan>> upload(const Plan& plan);

  /// Queues the call after the work that the ranks' streams hold now; later work of these streams waits for the call.
  /// `buffers`: of all ranks of the communicator. Never blocks the host. If the streams are being captured, the graph
  /// keeps all objects that it needs. Errors: invalid_usage (only some streams are captured, or by different captures),
  /// cuda.
  Result<void> launch(const Job& job, std::span<const Part> parts, std::span<const device::PeerBuffers> buffers);

  /// Keeps what its kernels use as long as it lives, and graphs of its launches.
  void hold(std::shared_ptr<const void> what) { shape_.held.push_back(std::move(what)); }

  /// Whether some launch was captured.
  bool has_captured() const { return captured_.any; }

  /// Makes waiting kernels give up soon.
  void abort();
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
  struct TransferTable {  // of a launch with Job::exchange
    std::shared_ptr<const PinnedMemory> memory;
    OwnEvent ended;  // the kernel that reads it; none in a graph, which keeps the memory
  };
  struct LocalRank {
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
  Result<void> write_links(std::size_t local, std::span<std::byte* const> areas);
  Result<Capture> capture_of(std::span<const Part> parts) const;
  Result<std::shared_ptr<const DeviceMemory>> buffer(std::shared_ptr<const DeviceMemory>& memory, std::size_t bytes);
  Result<void> make_buffers(std::span<const Part> parts, std::size_t group_bytes);
  Result<void> stage(std::span<const Part> parts, std::span<device::PeerBuffers> buffers);
  Result<void> follow(Stream stream, const OwnEvent& event) const;
  Result<void> join(std::span<const Part> parts, Launched& last, std::uint64_t capture);
  Result<void> fork(std::span<const Part> parts, Launched& last) const;
  Result<void> retain(const Capture& capture, std::span<const Part> parts, const TransferTable& table);
  void keep(std::span<const Part> parts);
  Result<TransferTable> take_table(bool captured);
  static void write_transfers(std::span<const Part> parts, const TransferTable& table);
  Result<void> start(const Job& job, device::Body body, device::Call& call, Stream stream) const;
  std::size_t fill_windows(device::Call& call, const Job& job, std::span<const Part> parts) const;
  void fill(device::Call& call, device::Body body, const Job& job, std::span<const Part> parts,
            std::span<const device::PeerBuffers> buffers) const;
  device::Body body_of(std::span<const Part> parts) const;
  device::ErrorRecord* records(std::byte* base, std::size_t local) const;
  bool meets_others() const { return !shape_.areas.empty(); }
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
  DeviceMemory memory_;  // links, and the areas unless EngineShape has them
  PinnedMemory shared_;  // the abort word, then the error records
  std::vector<LocalRank> local_ranks_;
  std::vector<DeviceMemory> plan_buffers_;  // with frees_late; the last one is used up to plan_buffer_used_
  std::size_t plan_buffer_used_ = 0;
  std::shared_ptr<const DeviceMemory> scratch_;  // of all local ranks; graphs may hold earlier allocations
  std::shared_ptr<const DeviceMemory> staging_;
  OwnStream setup_;
  std::vector<TransferTable> tables_;  // the oldest first
  std::vector<OwnEvent> ready_;        // by local rank
  Launched launched_;
  Launched captured_;
  std::vector<std::shared_ptr<const void>> in_flight_;  // objects that running kernels may use
};

}  // namespace tutti::cuda
