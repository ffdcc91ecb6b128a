#include "comm/gpu_peers.h"

#include <bit>
#include <chrono>
#include <thread>

namespace tutti {

Result<std::shared_ptr<GpuPeers>> GpuPeers::open(GpuProcess& process, const cuda::SharedGpu& gpu, Rank rank,
                                                 int ranks) {
  auto kernels = process.kernels(gpu);
  if (!kernels) return std::move(kernels).error();
  std::shared_ptr<GpuPeers> peers(new GpuPeers(process, gpu, ranks));
  cuda::EngineShape shape{
      .ranks = ranks, .local = {rank}, .lanes_max = process.lanes_max, .specialised = false, .frees_late = true};
  auto engine = cuda::Engine::open(gpu, *std::move(kernels), std::move(shape), std::make_shared<cuda::Graveyard>());
  if (!engine) return std::move(engine).error();
  peers->engine_ = *std::move(engine);
  auto current = cuda::Current::enter(*gpu);
  if (!current) return std::move(current).error();
  auto stream = cuda::OwnStream::create(gpu, /*foremost=*/true);
  if (!stream) return std::move(stream).error();
  peers->stream_ = *std::move(stream);
  auto event = cuda::OwnEvent::create(gpu);
  if (!event) return std::move(event).error();
  peers->queued_ = *std::move(event);
  return peers;
}

GpuPeers::~GpuPeers() {
  constexpr auto limit = std::chrono::seconds(1);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    auto ended = settled();
    if (!ended || *ended) return;
    if (std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::yield();
  }
  process_.keep(std::move(engine_));  // a kernel may still read there
  for (auto& room : rooms_) process_.keep(std::move(room));
  for (auto& room : outgrown_) process_.keep(std::move(room));
}

Result<std::byte*> GpuPeers::room(Room which, std::size_t bytes) {
  auto& room = rooms_[which == Room::input ? 0 : 1];
  if (!room || room->bytes() < bytes) {
    if (room) outgrown_.push_back(std::move(room));
    auto larger = cuda::DeviceMemory::allocate(gpu_, std::bit_ceil(bytes));
    if (!larger) return std::move(larger).error();
    room = std::make_shared<cuda::DeviceMemory>(*std::move(larger));
  }
  return room->data();
}

Result<void> GpuPeers::mark() {
  return gpu_->check(gpu_->api().event_record(queued_.get(), stream_.get()), "cuEventRecord");
}

Result<void> GpuPeers::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const cuda::Status copied = gpu_->api().copy_async(reinterpret_cast<cuda::Address>(to),
                                                     reinterpret_cast<cuda::Address>(from), bytes, stream_.get());
  if (auto queued = gpu_->check(copied, "cuMemcpyAsync"); !queued) return queued;
  return mark();
}

Result<void> GpuPeers::launch(const cuda::Job& job, cuda::Part part, std::span<const device::PeerBuffers> buffers) {
  part.stream = stream_.get();
  if (auto launched = engine_->launch(job, {&part, 1}, buffers); !launched) return launched;
  return mark();
}

Result<bool> GpuPeers::settled() const {
  auto current = cuda::Current::enter(*gpu_);
  if (!current) return std::move(current).error();
  if (!queued_.get()) return true;
  const cuda::Status status = gpu_->api().event_query(queued_.get());
  if (status == cuda::status::not_ready) return false;
  if (auto ended = gpu_->check(status, "cuEventQuery"); !ended) return ended.error();
  return true;
}

}  // namespace tutti
