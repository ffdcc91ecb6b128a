#include "gpu/gpu_context.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "comm/communicator.h"
#include "cuda/buffer_board.h"
#include "gpu/bounce_buffer.h"
#include "gpu/gpu_peers.h"
#include "gpu/peer_sharing.h"
#include "gpu/replay_watch.h"
#include "process/process.h"
#include "progress/stream.h"

namespace tutti {
namespace {

/// Smaller groups are faster through the host, where they travel inline.
constexpr std::size_t released_bytes_min = std::size_t{64} * 1024;
/// Of kernels that meet, the same, where the ranks' offers and asking for allocations cost more than a copy. Not
/// measured.
constexpr std::size_t window_bytes_min = std::size_t{64} * 1024;

/// Whether no process has two ranks on one GPU, so that each rank's kernels are launched alone; equal on all ranks.
bool has_gpus_of_their_own(const Membership& members) {
  const auto place = [](const Peer& peer) {
    return std::pair(peer.token, peer.area.header().gpu.load(std::memory_order_relaxed));
  };
  return std::ranges::all_of(
      members.peers, [&](const Peer& peer) { return std::ranges::count(members.peers, place(peer), place) == 1; });
}

/// Whether plain collectives use kernels that access peers' memory; equal on all ranks. Such kernels wait in their
/// streams for the host. Ranks of one process that share a GPU share its hardware queues, perhaps even a stream, so
/// their waiting kernels would block each other. If there are such ranks, no rank uses these kernels, unless
/// TUTTI_GPU_P2P=always.
bool goes_by_peers(const Communicator& communicator) {
  const Membership& members = communicator.members();
  if (!members.gpus_reach || communicator.forced_access().value_or(Access::mapped) != Access::mapped) return false;
  if (communicator.process().gpus.peers == PeerUse::always) return true;
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

/// GPUs have numbers from 1 in the ranks' areas.
cuda::Audience audience_of(const Membership& members, std::uint32_t own) {
  cuda::Audience audience;
  for (const Peer& peer : members.peers) {
    const std::uint32_t gpu = peer.area.header().gpu.load(std::memory_order_relaxed);
    const auto ordinal = static_cast<cuda::Ordinal>(gpu) - 1;
    if (!peer.same_process)
      audience.processes = true;
    else if (gpu != 0 && gpu != own && std::ranges::find(audience.gpus, ordinal) == audience.gpus.end())
      audience.gpus.push_back(ordinal);
  }
  return audience;
}

}  // namespace

GpuContext::~GpuContext() {
  if (sharing) sharing->leave();
}

void GpuContext::enter(std::vector<bool> by_rank, cuda::Audience audience, std::shared_ptr<StreamOrder> order) {
  neighbours = std::move(by_rank);
  audience_ = std::move(audience);
  stream_order = std::move(order);
  received_.resize(neighbours.size());
  stream_order->enter(rank_);
}

Result<void> GpuContext::ready_to_stage(Process& process) {
  if (proxy) return {};
  if (facts.reach == DeviceReach::released && !peers) {
    auto opened =
        TUTTI_TRY(GpuPeers::open(process.gpus, gpu, rank_, static_cast<int>(neighbours.size()), audience_, sharing));
    peers = std::move(opened);
    peers_made.store(peers.get());
    if (aborted_.load()) peers->abort();  // abort() may not have seen them
  }
  if (!bounce_pool) {
    bounce_pool = TUTTI_TRY(BouncePool::open(process.gpus, process.memory.segments, gpu));
  }
  const CpuMap::Device near = process.machine.cpu_map.device(gpu->driver().bus_id(gpu->ordinal()));
  bounce_pool->lie_on(process.machine.places.memory_node(near.node));
  auto made = std::make_shared<Stream>(process);
  TUTTI_TRY(made->start(Places::Kind::proxy, near.cpus));
  proxy = std::move(made);
  return {};
}

bool GpuContext::idle() const {
  if (bounce_pool && !bounce_pool->idle()) return false;
  if (const auto* made = peers_made.load(std::memory_order_acquire))
    if (auto ended = made->idle(); ended && !*ended) return false;
  if (!launch_group) return true;
  auto ended = launch_group->idle();
  return !ended || *ended;
}

void GpuContext::abort() {
  if (sharing) sharing->abort();  // before kernels end: see SharedBuffers
  if (launch_group) launch_group->abort();
  aborted_.store(true);
  if (auto* const made = peers_made.load()) made->abort();
}

std::optional<Error> GpuContext::trouble() const {
  if (sharing)
    if (auto met = sharing->trouble()) return met;
  if (auto differs = different_paths()) return differs;
  return launch_group ? launch_group->trouble() : std::nullopt;
}

void GpuContext::note_kernel() {
  if (paths_.empty()) return;
  PathHistory& own = *paths_[static_cast<std::size_t>(rank_)];
  if (launch_group->has_captured())
    own.stop();
  else
    own.add(/*by_host=*/false);
}

void GpuContext::note_message(const PeerRequest& request, bool by_host) {
  if (message_paths_.empty() || request.peer == rank_) return;
  message_paths_[static_cast<std::size_t>(rank_)]->of(request.send, request.peer).add(by_host);
}

void GpuContext::note_launched(const PeerRequest& request) {
  if (message_paths_.empty() || request.peer == rank_ || !launch_group->has_captured()) return;
  message_paths_[static_cast<std::size_t>(rank_)]->of(request.send, request.peer).stop();
}

/// Of messages to `peer`, or from it.
std::optional<Error> GpuContext::different_message_paths(Rank peer, bool send) const {
  const PathHistory& own = message_paths_[static_cast<std::size_t>(rank_)]->of(send, peer);
  const PathHistory& theirs = message_paths_[static_cast<std::size_t>(peer)]->of(!send, rank_);
  const auto message = PathHistory::difference(own, theirs);
  if (!message) return std::nullopt;
  const bool sender_by_host = (send ? own : theirs).by_host(*message);
  const auto memory = [](bool by_host) { return by_host ? "host memory" : "device memory"; };
  return Error{.code = Code::invalid_usage,
               .what = fmt::format("message {} from rank {} to rank {} is sent from {} and received into {}: both must "
                                   "be the same kind of memory",
                                   *message, send ? rank_ : peer, send ? peer : rank_, memory(sender_by_host),
                                   memory(!sender_by_host)),
               .peer = peer};
}

std::optional<Error> GpuContext::different_paths() const {
  for (Rank peer = 0; peer < static_cast<Rank>(message_paths_.size()); ++peer)
    for (const bool send : {true, false})
      if (auto differs = different_message_paths(peer, send)) return differs;
  for (std::size_t peer = 0; peer < paths_.size(); ++peer) {
    const PathHistory& own = *paths_[static_cast<std::size_t>(rank_)];
    const auto call = PathHistory::difference(own, *paths_[peer]);
    if (!call) continue;
    const auto way = [](bool by_host) {
      return by_host ? "makes one that goes through the host" : "makes one by a kernel";
    };
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("ranks make different calls: as collective {} rank {} {}, rank {} {}, so kind, "
                                     "size or memory differ",
                                     *call, rank_, way(own.by_host(*call)), peer, way(!own.by_host(*call))),
                 .peer = static_cast<int>(peer)};
  }
  return std::nullopt;
}

std::optional<Error> GpuContext::cause() const {
  if (!launch_group) return std::nullopt;
  auto met = launch_group->outcome();
  if (met || met.error().code != Code::cuda) return std::nullopt;
  return std::move(met).error();
}

Result<void> GpuContext::host_call(bool on_behalf) {
  return launch_group ? launch_group->host_call(rank_, on_behalf) : Result<void>();
}

void GpuContext::count(const Request& request) {
  if (!request.queued) count_collective();
  if (request.route.path != Path::synchronising) note_host();
}

void GpuContext::count(const PeerRequest& request) {
  if (!request.queued) note_message(request, /*by_host=*/!request.route.one_kernel());
  if (request.route.on_device()) return;
  if (request.send)
    stream_order->sent(rank_, request.peer);
  else
    (void)next_receive(request.peer);
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
  if (!idle) communicator.process().gpus.keep(proxy);
  proxy.reset();
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
  const auto gpu_of = [](const Peer& peer) { return peer.area.header().gpu.load(std::memory_order_relaxed); };
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
  if (together && !gpus.staged && !reaches_peers && !start.meets) {
    facts.reach = DeviceReach::single_launch;
    std::vector<Rank> all(static_cast<std::size_t>(members.ranks));
    std::iota(all.begin(), all.end(), 0);
    context->launch_group = LaunchGroup::of(gpus, key, std::move(all), members.ranks);
    context->launch_group->enter(members.rank, members.gpu);
  } else if (start.meets) {
    context->launch_group = std::move(start.meets);
    facts = {.reach = DeviceReach::synchronising,
             .messages_by_kernels = gpus.peers == PeerUse::apart || has_gpus_of_their_own(members),
             .windows = true,
             .window_bytes_min = window_bytes_min};
    context->compare_paths(histories_of<PathHistory>(members, call_paths_offset),
                           facts.messages_by_kernels ? histories_of<MessagePathHistory>(members, message_paths_offset)
                                                     : std::vector<MessagePathHistory*>());
  } else if (reaches_peers) {
    facts = {.reach = DeviceReach::released,
             .released_bytes_min = gpus.peers == PeerUse::always ? 0 : released_bytes_min};
  }
  cuda::Audience audience = audience_of(members, own);
  const bool meets = facts.reach == DeviceReach::synchronising;
  if (facts.reach == DeviceReach::released || meets) {
    if (!audience.processes || meets) start.arena.reset();  // nobody copies there
    auto sharing = PeerSharing::open(communicator.process(), members, std::move(start.arena), meets);
    if (!sharing) return std::move(sharing).error();
    context->sharing = *std::move(sharing);
    if (meets) context->launch_group->be_watched(context->sharing);
  }
  context->enter(std::move(neighbours), std::move(audience), StreamOrder::of(gpus.directory, key, members.ranks));
  communicator.process().log.info(
      LogTopic::init, communicator.who(), "calls on device memory go {}{}", text_of(facts),
      facts.reach != DeviceReach::none ? ""
      : together                       ? ", because TUTTI_GPU_STAGED is always"
                 : ", because not all ranks share one GPU and process, and kernels that access peers' memory are not "
                   "usable");
  if (facts.reach != DeviceReach::single_launch)
    context->waits(gpus.enter_waiting(communicator.process().log, communicator.who()));
  communicator.attach(std::move(context));
  return {};
}

GpuContext* gpu_context(const Communicator& communicator) {
  return static_cast<GpuContext*>(communicator.device());  // the only implementation
}

}  // namespace tutti
