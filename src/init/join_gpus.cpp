// Finds out during the start which ranks can access each other's GPUs.
#include "gpu/gpu_context.h"
#include "init/join.h"

namespace tutti {

/// A GPU that cannot be shared does not keep its rank from joining.
void Join::offer_gpu(PeerInfo& info) {
  if (!members_.gpu) return;
  info.gpu.gpu = static_cast<std::uint32_t>(members_.gpu->ordinal()) + 1;
  const GpuProcess& gpus = process_.gpus;
  if (gpus.staged || gpus.peers == PeerUse::off || options_.ranks > device::ranks_max) return;
  auto proof = GpuProof::open(process_.gpus, members_.gpu, options_.rank, options_.ranks);
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
    reaches_gpus_ = gpu_proof_->reaches(rank, info, same_process);
    if (!reaches_gpus_ && info.gpu != 0)
      process_.log.info(LogTopic::init, members_.name, "GPU {} cannot access memory of GPU {} of rank {}",
                        members_.gpu->ordinal(), info.gpu - 1, rank);
  }
}

}  // namespace tutti
