#include "init/phases/gpu_setup.h"

#include <algorithm>
#include <vector>

#include "cuda/engine.h"
#include "init/phases/facts.h"

namespace tutti::start {
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

/// With how many blocks each rank's kernels synchronise with those of the others; 0: they do not. Equal on all ranks
/// whose GPUs reach all others.
int channels_to_synchronize(const Facts& facts) {
  const GpuProcess& gpus = facts.process.gpus;
  if (gpus.settings.peers != PeerUse::automatic && gpus.settings.peers != PeerUse::flags &&
      gpus.settings.peers != PeerUse::apart)
    return 0;
  if (facts.ranks() < 2) return 0;
  const std::string& transport = facts.process.config.text("TUTTI_TRANSPORT");
  if (transport != "auto" && transport != name(Access::mapped)) return 0;
  const PeerInfo& first = facts.peer_infos.front();
  const auto beside_first = [&first](const PeerInfo& info) {
    return info.token == first.token && info.gpu.gpu == first.gpu.gpu;
  };
  if (gpus.settings.peers != PeerUse::apart && std::ranges::all_of(facts.peer_infos, beside_first))
    return 0;  // one launch serves all
  int channels = device::block_threads;
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    if (gpus.settings.peers == PeerUse::automatic && in_turns(facts.peer_infos, rank)) return 0;
    channels = std::min(channels, channels_of(facts.peer_infos, rank));
  }
  if (channels_of(facts.peer_infos, facts.rank()) == 0)
    facts.process.log.warn(
        facts.members.name,
        "kernels of earlier communicators may need all blocks of GPU {}: calls of this one do without "
        "kernels that wait for each other on all ranks. TUTTI_MAX_CTAS says how many blocks a communicator takes; with "
        "TUTTI_LAUNCH_ORDER_IMPLICIT=1 any number has room",
        facts.members.gpu->ordinal());
  return channels;
}

}  // namespace

void GpuSetup::offer(const Facts& facts, PeerInfo& info) {
  const Membership& members = facts.members;
  if (!members.gpu) return;
  info.gpu.gpu = static_cast<std::uint32_t>(members.gpu->ordinal()) + 1;
  const GpuProcess& gpus = facts.process.gpus;
  if (gpus.settings.staged || gpus.settings.peers == PeerUse::off || facts.ranks() > device::ranks_max) return;
  auto proof =
      GpuProof::open(facts.process, members.name, members.gpu, facts.rank(), facts.ranks(), members.area->name.id);
  if (!proof) {
    facts.process.log.info(LogTopic::init, members.name, "other ranks cannot test access to memory of GPU {}: {}",
                           members.gpu->ordinal(), proof.error().text());
    return;
  }
  proof_ = *std::move(proof);
  info.gpu = proof_->info();
}

/// Ranks that share one GPU and process need no proof.
void GpuSetup::reach(const Facts& facts) {
  const Membership& members = facts.members;
  reaches_ = proof_ != nullptr && !facts.several_hosts();
  for (Rank rank = 0; reaches_ && rank < facts.ranks(); ++rank) {
    const GpuInfo& info = facts.peer_infos[rank].gpu;
    const Peer& peer = members.peers[rank];
    const auto fetch = [&](SegmentName name) -> Result<SegmentTable::Export> {
      auto fetched =
          TUTTI_TRY(fetch_segment(peer.fd_server, peer.key, name, facts.wait_for_one_ns(), [] { return false; }));
      return std::move(fetched.segment);
    };
    const auto reached = proof_->reach(rank, info, peer.same_process, fetch);
    reaches_ = static_cast<bool>(reached);
    if (!reached && info.gpu != 0)
      facts.process.log.info(LogTopic::init, members.name, "GPU {} cannot access memory of GPU {} of rank {}: {}",
                             members.gpu->ordinal(), info.gpu - 1, rank, reached.error().text());
  }
  if (!reaches_) return;
  if (const int channels = channels_to_synchronize(facts); channels > 0) launch(facts, channels);
}

/// If this is the last rank of its GPU and process to get here; the others only enter.
void GpuSetup::launch(const Facts& facts, int channels) {
  GpuProcess& gpus = facts.process.gpus;
  const auto& peers = facts.members.peers;
  const auto& infos = facts.peer_infos;
  const Rank own = facts.rank();
  RemoteGroups remote{.channels = channels};
  std::vector<Rank> neighbours;
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    const bool here = peers[rank].same_process;
    const bool together = gpus.settings.peers != PeerUse::apart || rank == own;
    if (here && together && infos[rank].gpu.gpu == infos[own].gpu.gpu) neighbours.push_back(rank);
    remote.areas.push_back(proof_->arena()->at[static_cast<std::size_t>(rank)] + cuda::PeerArena::area_offset);
    if (!here || rank == own) continue;
    auto theirs = gpus.directory.find_or_make<cuda::PeerArena>(peers[rank].area_name.id,
                                                               [] { return std::shared_ptr<cuda::PeerArena>(); });
    if (theirs == nullptr) return;  // that rank has given up already
    remote.held.push_back(std::move(theirs));
  }
  remote.held.push_back(proof_->arena());
  remote.held.push_back(proof_->blocks());
  // What is not used. Under MPS this process keeps account of the blocks of the others; and ranks that share what they
  // have taken together keep it, as some of them use more than they have taken.
  if (neighbours_of(infos, own).ranks == 1) proof_->blocks()->shrink(channels * sharing_processes(infos, own));
  group_ = LaunchGroup::of(gpus, peers[neighbours.front()].area_name.id, neighbours, facts.ranks());
  if (auto begun = group_->enter(own, facts.members.gpu, std::move(remote)); !begun) give_up(facts, begun.error());
}

void GpuSetup::give_up(const Facts& facts, const Error& why) {
  facts.process.log.info(LogTopic::init, facts.members.name, "kernels on GPU {} do not meet those of other ranks: {}",
                         facts.members.gpu->ordinal(), why.text());
  group_->abort();
  group_.reset();
}

std::int64_t GpuSetup::next_look_ns(const Facts& facts) {
  constexpr std::int64_t look_ns = 100'000;
  return facts.process.system.now_ns() + look_ns;
}

Progress GpuSetup::advance(const Facts& facts) {
  constexpr std::int64_t longest_ns = 20'000'000'000;  // the kernels themselves give up earlier
  if (until_ns_ == 0) until_ns_ = facts.process.system.now_ns() + longest_ns;
  const auto proof = group_->proof();
  if (!proof && facts.process.system.now_ns() < until_ns_) return Progress::blocked;
  if (!proof)
    give_up(facts, {.code = Code::timeout, .what = "another rank of this process and GPU gave up"});
  else if (!*proof)
    give_up(facts, proof->error());
  return Progress::done;
}

GpuStart GpuSetup::keep(bool all_reach, bool all_synchronize) {
  GpuStart start;
  if (proof_ && all_reach) start.arena = proof_->arena();
  if (all_synchronize) start.meets = std::move(group_);
  group_.reset();
  proof_.reset();
  return start;
}

}  // namespace tutti::start
