// Finds out during the start which ranks can access each other's GPUs, and whether their kernels can meet.
#include <algorithm>
#include <functional>

#include "cuda/engine.h"
#include "gpu/gpu_context.h"
#include "init/join.h"

namespace tutti {
namespace {

/// How many other processes use the GPU of `rank`.
int processes_beside(const std::vector<PeerInfo>& infos, Rank rank) {
  const PeerInfo& own = infos[static_cast<std::size_t>(rank)];
  std::vector<std::uint64_t> tokens;
  for (const PeerInfo& info : infos)
    if (info.gpu.uuid == own.gpu.uuid && info.token != own.token &&
        std::ranges::find(tokens, info.token) == tokens.end())
      tokens.push_back(info.token);
  return static_cast<int>(tokens.size());
}

/// The processes that share the blocks of a rank's GPU.
int sharing_processes(const std::vector<PeerInfo>& infos, Rank rank) {
  return infos[static_cast<std::size_t>(rank)].gpu.shared_by_mps != 0 ? processes_beside(infos, rank) + 1 : 1;
}

/// The ranks of a process and its GPU.
struct Neighbours {
  std::uint64_t ranks = 0;
  std::uint64_t blocks = 0;  ///< that they have taken together
};
Neighbours neighbours_of(const std::vector<PeerInfo>& infos, Rank rank) {
  const PeerInfo& own = infos[static_cast<std::size_t>(rank)];
  Neighbours all;
  for (const PeerInfo& info : infos)
    if (info.token == own.token && info.gpu.gpu == own.gpu.gpu) {
      ++all.ranks;
      all.blocks += info.gpu.blocks;
    }
  return all;
}

/// The ranks of a process on one GPU share what they have taken of it; under MPS so do its processes. All must fit the
/// GPU together, also where the kernels of communicators run one after another and so each may take all of it.
int channels_of(const std::vector<PeerInfo>& infos, Rank rank) {
  const Neighbours all = neighbours_of(infos, rank);
  const std::uint64_t blocks =
      std::min<std::uint64_t>(all.blocks, infos[static_cast<std::size_t>(rank)].gpu.processors);
  const std::uint64_t sharers = all.ranks * static_cast<std::uint64_t>(sharing_processes(infos, rank));
  return static_cast<int>(std::min<std::uint64_t>(blocks / sharers, device::block_threads));
}

bool in_turns(const std::vector<PeerInfo>& infos, Rank rank) {
  const GpuInfo& gpu = infos[static_cast<std::size_t>(rank)].gpu;
  if (gpu.uuid == cuda::DeviceUuid{}) return true;  // perhaps
  return gpu.shared_by_mps == 0 && processes_beside(infos, rank) > 0;
}

}  // namespace

/// A GPU that cannot be shared does not keep its rank from joining.
void Join::offer_gpu(PeerInfo& info) {
  if (!members_.gpu) return;
  info.gpu.gpu = static_cast<std::uint32_t>(members_.gpu->ordinal()) + 1;
  const GpuProcess& gpus = process_.gpus;
  if (gpus.staged || gpus.peers == PeerUse::off || options_.ranks > device::ranks_max) return;
  auto proof =
      GpuProof::open(process_, members_.name, members_.gpu, options_.rank, options_.ranks, members_.area->name.id);
  if (!proof) {
    process_.log.info(LogTopic::init, members_.name, "other ranks cannot test access to memory of GPU {}: {}",
                      members_.gpu->ordinal(), proof.error().text());
    return;
  }
  gpu_proof_ = *std::move(proof);
  info.gpu = gpu_proof_->info();
}

/// Ranks that share one GPU and process need no proof.
void Join::try_gpus() {
  reaches_gpus_ = gpu_proof_ != nullptr && !spans_hosts_;
  for (Rank rank = 0; reaches_gpus_ && rank < options_.ranks; ++rank) {
    const GpuInfo& info = peer_infos_[rank].gpu;
    const bool same_process = members_.peers[rank].same_process;
    const auto fetch = [&](SegmentName name) -> Result<SegmentTable::Export> {
      const Peer& peer = members_.peers[rank];
      const std::int64_t limit_ns = std::max<std::int64_t>(1, (deadline_ns_ - process_.system.now_ns()) / 10 * 9);
      auto fetched = fetch_segment(peer.fd_server, peer.key, name, limit_ns, [] { return false; });
      if (!fetched) return std::move(fetched).error();
      return std::move(fetched->segment);
    };
    const auto reached = gpu_proof_->reach(rank, info, same_process, fetch);
    reaches_gpus_ = static_cast<bool>(reached);
    if (!reached && info.gpu != 0)
      process_.log.info(LogTopic::init, members_.name, "GPU {} cannot access memory of GPU {} of rank {}: {}",
                        members_.gpu->ordinal(), info.gpu - 1, rank, reached.error().text());
  }
  if (reaches_gpus_)
    if (const int channels = channels_to_meet(); channels > 0) begin_meeting(channels);
}

/// With how many blocks each rank's kernels meet those of the others; 0: they do not. Equal on all ranks whose GPUs
/// reach all others.
int Join::channels_to_meet() const {
  const GpuProcess& gpus = process_.gpus;
  if (gpus.peers != PeerUse::automatic && gpus.peers != PeerUse::flags && gpus.peers != PeerUse::apart) return 0;
  if (options_.ranks < 2) return 0;
  const std::string& transport = process_.config.text("TUTTI_TRANSPORT");
  if (transport != "auto" && transport != name(Access::mapped)) return 0;
  const PeerInfo& first = peer_infos_.front();
  const auto beside_first = [&first](const PeerInfo& info) {
    return info.token == first.token && info.gpu.gpu == first.gpu.gpu;
  };
  if (gpus.peers != PeerUse::apart && std::ranges::all_of(peer_infos_, beside_first))
    return 0;  // one launch serves all
  int channels = device::block_threads;
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    if (gpus.peers == PeerUse::automatic && in_turns(peer_infos_, rank)) return 0;
    channels = std::min(channels, channels_of(peer_infos_, rank));
  }
  if (channels_of(peer_infos_, options_.rank) == 0)
    process_.log.warn(
        members_.name,
        "kernels of earlier communicators may need all blocks of GPU {}: calls of this one do without "
        "kernels that wait for each other on all ranks. TUTTI_MAX_CTAS says how many blocks a communicator takes; with "
        "TUTTI_LAUNCH_ORDER_IMPLICIT=1 any number has room",
        members_.gpu->ordinal());
  return channels;
}

/// Launches a kernel that meets those of all other ranks, if this is the last rank of its GPU and process to get here.
void Join::begin_meeting(int channels) {
  const auto& peers = members_.peers;
  GroupsElsewhere elsewhere{.channels = channels};
  std::vector<Rank> neighbours;
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    const bool here = peers[rank].same_process;
    const bool together = process_.gpus.peers != PeerUse::apart || rank == options_.rank;
    if (here && together && peer_infos_[rank].gpu.gpu == peer_infos_[options_.rank].gpu.gpu) neighbours.push_back(rank);
    elsewhere.areas.push_back(gpu_proof_->arena()->at[static_cast<std::size_t>(rank)] + cuda::PeerArena::area_offset);
    if (!here || rank == options_.rank) continue;
    auto theirs = process_.gpus.directory.find_or_make<cuda::PeerArena>(
        peers[rank].area_name.id, [] { return std::shared_ptr<cuda::PeerArena>(); });
    if (theirs == nullptr) return;  // that rank has given up already
    elsewhere.held.push_back(std::move(theirs));
  }
  elsewhere.held.push_back(gpu_proof_->arena());
  elsewhere.held.push_back(gpu_proof_->blocks());
  // What is not used. Under MPS this process keeps account of the blocks of the others; and ranks that share what they
  // have taken together keep it, as some of them use more than they have taken.
  if (neighbours_of(peer_infos_, options_.rank).ranks == 1)
    gpu_proof_->blocks()->shrink(channels * sharing_processes(peer_infos_, options_.rank));
  gpus_meeting_ = LaunchGroup::of(process_.gpus, peers[neighbours.front()].area_name.id, neighbours, options_.ranks);
  if (auto begun = gpus_meeting_->enter(options_.rank, members_.gpu, std::move(elsewhere)); !begun)
    gave_up_meeting(begun);
}

void Join::gave_up_meeting(const Result<void>& why) {
  process_.log.info(LogTopic::init, members_.name, "kernels on GPU {} do not meet those of other ranks: {}",
                    members_.gpu->ordinal(), why.error().text());
  if (gpus_meeting_) gpus_meeting_->abort();
  gpus_meeting_.reset();
}

void Join::await_meeting() {
  constexpr std::int64_t longest_ns = 20'000'000'000;  // the kernels themselves give up earlier
  meeting_until_ns_ = process_.system.now_ns() + longest_ns;
  state_ = State::meet;
}

/// Kernels ring no doorbell.
std::int64_t Join::next_look_at_meeting_ns() const {
  constexpr std::int64_t look_ns = 100'000;
  return process_.system.now_ns() + look_ns;
}

/// Once all ranks have agreed.
void Join::keep_gpus(bool meet) {
  if (gpu_proof_ && members_.gpus_reach) gpu_start_.arena = gpu_proof_->arena();
  if (meet) gpu_start_.meets = std::move(gpus_meeting_);
  gpus_meeting_.reset();
  gpu_proof_.reset();
}

/// Once it is over, gpus_meeting_ says how it went.
Progress Join::advance_meeting() {
  if (gpus_meeting_) {
    const auto proof = gpus_meeting_->proof();
    if (!proof && process_.system.now_ns() < meeting_until_ns_) return Progress::blocked;
    if (!proof)
      gave_up_meeting(Error{.code = Code::timeout, .what = "another rank of this process and GPU gave up"});
    else if (!*proof)
      gave_up_meeting(*proof);
  }
  state_verdict();
  return Progress::moved;
}

}  // namespace tutti
