#include "gpu/staging.h"

#include "process/process.h"
#include "progress/stream.h"

namespace tutti {

Result<void> Staging::make(Process& process, const cuda::SharedGpu& gpu, const OpenPeers& open_peers) {
  if (proxy_) return {};
  if (open_peers && !peers_) {
    peers_ = TUTTI_TRY(open_peers());
    peers_made_.store(peers_.get());
    if (aborted_.load()) peers_->abort();  // abort() may not have seen them
  }
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

}  // namespace tutti
