#include "gpu/gpu_context.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "comm/communicator.h"
#include "cuda/buffer_board.h"
#include "gpu/peer_sharing.h"
#include "process/process.h"
#include "progress/stream.h"

namespace tutti {
namespace {

/// Smaller groups are faster through the host, where they travel inline.
constexpr std::size_t released_bytes_min = std::size_t{64} * 1024;
/// Of synchronising kernels, the same, where the ranks' offers and asking for allocations cost more than a copy. Not
/// measured.
constexpr std::size_t window_bytes_min = std::size_t{64} * 1024;

/// GPUs have numbers from 1 in the ranks' areas.
std::uint32_t gpu_of(const Peer& peer) {
  return peer.area.header().gpu.load(std::memory_order_relaxed);
}

/// Whether no process has two ranks on one GPU, so that each rank's kernels are launched alone; equal on all ranks.
bool has_gpus_of_their_own(const Membership& members) {
  const auto place = [](const Peer& peer) { return std::pair(peer.token, gpu_of(peer)); };
  return std::ranges::all_of(
      members.peers, [&](const Peer& peer) { return std::ranges::count(members.peers, place(peer), place) == 1; });
}

/// Whether plain collectives use kernels that access peers' memory; equal on all ranks. Such kernels wait in their
/// streams for the host. Ranks of one process that share a GPU share its hardware queues, perhaps even a stream, so
/// their waiting kernels would block each other. If there are such ranks, no rank uses these kernels, unless
/// TUTTI_GPU_P2P=always.
bool goes_by_peers(Communicator& communicator) {
  const Membership& members = communicator.members();
  const auto forced = communicator.plans().access_facts().forced;
  if (!members.gpus_reach || forced.value_or(Access::mapped) != Access::mapped) return false;
  if (communicator.process().gpus.settings.peers == PeerUse::always) return true;
  if (members.ranks == 1) return false;  // it has no peers
  return has_gpus_of_their_own(members);
}

/// At the end of the ranks' boards.
template <class History>
std::vector<History*> histories_of(const Membership& members, std::size_t offset) {
  std::vector<History*> paths;
  for (const Peer& peer : members.peers) paths.push_back(reinterpret_cast<History*>(peer.area.device_board() + offset));
  return paths;
}
constexpr std::size_t call_paths_offset = RankArea::device_board_bytes - limits::line_bytes;
constexpr std::size_t message_paths_offset = call_paths_offset - sizeof(MessagePathHistory);
static_assert(sizeof(PathHistory) <= limits::line_bytes && sizeof(cuda::BufferBoard) <= message_paths_offset);
static_assert(MessagePathHistory::ranks_max == device::ranks_max);

cuda::Audience audience_of(const Membership& members, std::uint32_t own) {
  cuda::Audience audience;
  for (const Peer& peer : members.peers) {
    const std::uint32_t gpu = gpu_of(peer);
    const auto ordinal = static_cast<cuda::Ordinal>(gpu) - 1;
    if (!peer.same_process)
      audience.processes = true;
    else if (gpu != 0 && gpu != own && std::ranges::find(audience.gpus, ordinal) == audience.gpus.end())
      audience.gpus.push_back(ordinal);
  }
  return audience;
}

/// After a communicator is destroyed, graphs of its calls may still be replayed: as long as all ranks do. Makes replays
/// give up that wait for long once the process of a peer has ended, since nobody watches the peers otherwise. It may
/// have ended after its last replay, so others go on. A Task for the service thread; ends with the last graph.
class ReplayWatch final : public Task {
 public:
  ReplayWatch(System& system, std::weak_ptr<cuda::Engine> engine, std::vector<std::shared_ptr<PeerProcess>> peers)
      : system_(system), engine_(std::move(engine)), peers_(std::move(peers)) {}

  bool advance() override {
    const auto engine = engine_.lock();
    if (!engine) return false;
    const bool ended = std::ranges::any_of(peers_, [](const auto& peer) { return peer->ended(); });
    if (ended) engine->failures().say_some_gone();
    return !ended;
  }

  /// Nothing tells that the last graph has gone.
  std::int64_t poll_set(std::vector<PollItem>& items) override {
    constexpr std::int64_t look_ns = 1'000'000'000;
    for (const auto& peer : peers_) peer->poll_set(items);
    return system_.now_ns() + look_ns;
  }

 private:
  System& system_;
  const std::weak_ptr<cuda::Engine> engine_;
  const std::vector<std::shared_ptr<PeerProcess>> peers_;
};

}  // namespace

Result<void> Staging::make(Process& process, const GpuContext& context) {
  if (proxy_) return {};
  if (context.facts.reach == DeviceReach::released && !peers_) {
    peers_ = TUTTI_TRY(GpuPeers::open(process.gpus, context));
    peers_made_.store(peers_.get());
    if (aborted_.load()) peers_->abort();  // abort() may not have seen them
  }
  const cuda::SharedGpu& gpu = context.gpu;
  if (!pool_) pool_ = TUTTI_TRY(BouncePool::open(process.gpus, process.memory.segments, gpu));
  const CpuMap::Device near = process.machine.cpu_map.device(gpu->driver().bus_id(gpu->ordinal()));
  pool_->lie_on(process.machine.places.memory_node(near.node));
  auto made = std::make_shared<Stream>(process);
  TUTTI_TRY(made->start(Places::Kind::proxy, near.cpus));
  proxy_ = std::move(made);
  return {};
}

bool Staging::idle() const {
  if (pool_ && !pool_->idle()) return false;
  const auto* made = peers_made_.load(std::memory_order_acquire);
  if (made == nullptr) return true;
  auto ended = made->idle();
  return !ended || *ended;
}

void Staging::abort() {
  aborted_.store(true);
  if (auto* const made = peers_made_.load()) made->abort();
}

std::string GpuContext::explain() const {
  const std::string by_host =
      "by a copy to host memory that peers can map, then as a call on memory from tuttiMemAlloc, then by a copy back";
  switch (facts.reach) {
    case DeviceReach::none: return by_host;
    case DeviceReach::single_launch: return "by a kernel, through the memory of the GPU";
    case DeviceReach::synchronising:
      return "by kernels that wait for each other on the GPUs" +
             (facts.messages_by_kernels ? std::string() : "; sends and receives " + by_host);
    case DeviceReach::released: break;
  }
  const std::string by_peers = "by kernels of each rank, which access the memory of peers' GPUs";
  if (facts.released_bytes_min == 0) return by_peers;
  return fmt::format("groups of {} KiB and more {}; smaller ones {}", facts.released_bytes_min / 1024, by_peers,
                     by_host);
}

GpuContext::~GpuContext() {
  if (sharing) sharing->leave();
}

bool GpuContext::idle() const {
  if (!staging.idle()) return false;
  if (!launch_group) return true;
  auto ended = launch_group->idle();
  return !ended || *ended;
}

void GpuContext::abort() {
  if (sharing) sharing->abort();  // before kernels end: see SharedBuffers
  if (launch_group) launch_group->abort();
  staging.abort();
}

std::optional<Error> GpuContext::trouble() const {
  if (sharing)
    if (auto met = sharing->trouble()) return met;
  if (auto differs = paths.difference()) return differs;
  return launch_group ? launch_group->trouble() : std::nullopt;
}

std::optional<Error> GpuContext::cause() const {
  if (!launch_group) return std::nullopt;
  auto met = launch_group->outcome();
  if (met || met.error().code != Code::cuda) return std::nullopt;
  return std::move(met).error();
}

Result<void> GpuContext::host_call(bool on_behalf) {
  return launch_group ? launch_group->host_call(paths.rank(), on_behalf) : Result<void>();
}

void GpuContext::count(const Request& request) {
  if (!request.queued) neighbours->count_collective();
  if (request.route.path != Path::synchronising) paths.note_host();
}

void GpuContext::count(const PeerRequest& request) {
  if (!request.queued) paths.note_message(request, /*by_host=*/!request.route.one_kernel());
  if (request.route.on_device()) return;
  if (request.send)
    neighbours->order().sent(paths.rank(), request.peer);
  else
    (void)neighbours->next_receive(request.peer);
}

void GpuContext::explain_ending(Error& error) {
  if (!launch_group || launch_group->is_single_launch()) return;
  constexpr std::int64_t longest_ns = 500'000'000;
  const bool ended = launch_group->await_end(awaited_.exchange(true) ? 0 : longest_ns);
  if (auto met = launch_group->trouble(); met && error.what.find(met->what) == std::string::npos)
    error.what += "\n  " + met->what;
  if (!ended) error.what += "\n  Kernels of this rank have not ended yet: do not use the buffers of its calls again";
}

void GpuContext::leave(const Communicator& communicator, bool idle) {
  if (sharing) sharing->leave();
  if (!idle) communicator.process().gpus.keep(staging.proxy());
  staging.end_proxy();
  if (!launch_group || launch_group->is_single_launch()) return;
  std::weak_ptr<cuda::Engine> engine = launch_group->captured_engine();
  if (engine.expired()) return;
  std::vector<std::shared_ptr<PeerProcess>> processes;
  for (const Peer& peer : communicator.members().peers)
    if (peer.process && std::ranges::find(processes, peer.process) == processes.end())
      processes.push_back(peer.process);
  Process& process = communicator.process();
  (void)process.service.add(std::make_shared<ReplayWatch>(process.system, std::move(engine), std::move(processes)));
}

Result<void> make_gpu_context(Communicator& communicator, GpuStart start) {
  const Membership& members = communicator.members();
  if (!members.gpu) return {};
  GpuProcess& gpus = communicator.process().gpus;
  const std::uint32_t own = gpu_of(members.peers[members.rank]);
  std::vector<bool> neighbours;
  for (const Peer& peer : members.peers) neighbours.push_back(peer.same_process && gpu_of(peer) == own);
  // The area id of the lowest neighbour, which is the same on all neighbours.
  const auto first = static_cast<std::size_t>(std::ranges::find(neighbours, true) - neighbours.begin());
  const std::uint32_t key = members.peers[first].area_name.id;
  auto context = std::make_unique<GpuContext>(members.gpu, members.rank);
  const bool together = std::ranges::all_of(neighbours, std::identity{});
  DeviceFacts& facts = context->facts;
  const bool reaches_peers = goes_by_peers(communicator);
  if (together && !gpus.settings.staged && !reaches_peers && !start.meets) {
    facts.reach = DeviceReach::single_launch;
    std::vector<Rank> all(static_cast<std::size_t>(members.ranks));
    std::iota(all.begin(), all.end(), 0);
    context->launch_group = LaunchGroup::of(gpus, key, std::move(all), members.ranks);
    TUTTI_TRY(context->launch_group->enter(members.rank, members.gpu));
  } else if (start.meets) {
    context->launch_group = std::move(start.meets);
    facts = {.reach = DeviceReach::synchronising,
             .messages_by_kernels = gpus.settings.peers == PeerUse::apart || has_gpus_of_their_own(members),
             .windows = true,
             .window_bytes_min = window_bytes_min};
    context->paths.compare(histories_of<PathHistory>(members, call_paths_offset),
                           facts.messages_by_kernels ? histories_of<MessagePathHistory>(members, message_paths_offset)
                                                     : std::vector<MessagePathHistory*>());
  } else if (reaches_peers) {
    facts = {.reach = DeviceReach::released,
             .released_bytes_min = gpus.settings.peers == PeerUse::always ? 0 : released_bytes_min};
  }
  cuda::Audience audience = audience_of(members, own);
  const bool meets = facts.reach == DeviceReach::synchronising;
  if (facts.reach == DeviceReach::released || meets) {
    if (!audience.processes || meets) start.arena.reset();  // nobody copies there
    context->sharing = TUTTI_TRY(PeerSharing::open(communicator.process(), members, std::move(start.arena), meets));
    if (meets) context->launch_group->be_watched(context->sharing);
  }
  context->audience = std::move(audience);
  context->neighbours.emplace(members.rank, std::move(neighbours), StreamOrder::of(gpus.directory, key, members.ranks));
  communicator.process().log.info(
      LogTopic::init, communicator.members().who, "calls on device memory go {}{}", context->explain(),
      facts.reach != DeviceReach::none ? ""
      : together                       ? ", because TUTTI_GPU_STAGED is always"
                 : ", because not all ranks share one GPU and process, and kernels that access peers' memory are not "
                   "usable");
  if (facts.reach != DeviceReach::single_launch)
    context->waiting = gpus.waiting.enter(communicator.process().log, communicator.members().who);
  communicator.attach(std::move(context));
  return {};
}

GpuContext* gpu_context(const Communicator& communicator) {
  return static_cast<GpuContext*>(communicator.device());  // the only implementation
}

std::int64_t next_gpu_poll_ns(const Communicator& communicator) {
  constexpr std::int64_t every_ns = 50'000;
  return communicator.process().system.now_ns() + every_ns;
}

}  // namespace tutti
