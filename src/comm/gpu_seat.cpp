#include "comm/gpu_seat.h"

#include "comm/gpu_peers.h"
#include "comm/process.h"
#include "comm/stage.h"
#include "comm/stream.h"

namespace tutti {

GpuSeat::~GpuSeat() = default;

void GpuSeat::sit(Rank rank, std::vector<bool> around, std::shared_ptr<GpuMeeting> with) {
  neighbours = std::move(around);
  meeting = std::move(with);
  received_.resize(neighbours.size());
  meeting->enter(rank);
}

Result<void> GpuSeat::ready_to_stage(Process& process, Rank rank) {
  if (proxy) return {};
  if (reaches_peers && !peers) {
    auto opened = GpuPeers::open(process.gpus, gpu, rank, static_cast<int>(neighbours.size()));
    if (!opened) return std::move(opened).error();
    peers = *std::move(opened);
    peers_made.store(peers.get(), std::memory_order_release);
  }
  if (!stages) {
    auto opened = StagePool::open(process.gpus, process.segments, gpu);
    if (!opened) return std::move(opened).error();
    stages = *std::move(opened);
  }
  auto made = std::make_shared<Stream>(process);
  if (auto started = made->start(/*roams=*/true); !started) return started;
  proxy = std::move(made);
  return {};
}

bool GpuSeat::idle() const {
  if (stages && !stages->idle()) return false;
  if (const auto* made = peers_made.load(std::memory_order_acquire))
    if (auto ended = made->idle(); ended && !*ended) return false;
  if (!team) return true;
  auto ended = team->idle();
  return !ended || *ended;
}

void GpuSeat::leave(Process& process, bool idle) {
  if (!idle) process.gpus.keep(proxy);
  proxy.reset();
}

}  // namespace tutti
