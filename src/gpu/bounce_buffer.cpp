#include "gpu/bounce_buffer.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/limits.h"

namespace tutti {
namespace {

constexpr std::size_t buffer_bytes_min = std::size_t{64} * 1024;
/// Limit for all buffers of a rank together. A batch that alone needs more exceeds the limit; trim() frees the excess
/// when a later call needs a new buffer.
constexpr std::size_t pool_bytes_max = std::size_t{512} << 20;

constexpr std::size_t ready_at = 0;  // written by the stream; each word has cache lines to itself
constexpr std::size_t done_at = 2 * limits::line_bytes;
constexpr std::size_t table_at = 2 * done_at;
constexpr std::size_t word_bytes = table_at + device::ranks_max * sizeof(device::PeerBuffers);

std::atomic_ref<std::uint32_t> word(std::byte* at) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

cuda::Address address(std::byte* at) {
  return reinterpret_cast<cuda::Address>(at);
}

}  // namespace

Result<std::shared_ptr<BounceBuffer>> BounceBuffer::make(SegmentTable& segments, const cuda::SharedGpu& gpu,
                                                         std::size_t bytes, int node) {
  std::shared_ptr<BounceBuffer> buffer(new BounceBuffer(segments, gpu));
  auto memory = segments.allocate(bytes, /*touch=*/true, node);
  if (!memory) return std::move(memory).error().during("allocate a bounce buffer for calls on device memory");
  buffer->at_ = *memory;
  buffer->bytes_ = bytes;
  buffer->registration_ = TUTTI_TRY(cuda::Registration::make(gpu, buffer->at_, bytes));
  buffer->words_ = TUTTI_TRY(cuda::PinnedMemory::allocate(gpu, word_bytes));
  buffer->ended_ = TUTTI_TRY(cuda::OwnEvent::create(gpu));
  return buffer;
}

BounceBuffer::~BounceBuffer() {
  if (at_ == nullptr) return;
  registration_ = {};
  (void)segments_.free(at_);
}

void BounceBuffer::take(std::uint64_t batch) {
  batch_ = batch;
  ++use_;
  with_stream_.store(true, std::memory_order_relaxed);
  with_host_.store(true, std::memory_order_relaxed);
}

Result<void> BounceBuffer::signal(cuda::Stream stream, std::uint32_t phase) {
  const cuda::Status queued = gpu_->api().stream_write_value(stream, address(words_.device() + ready_at), value(phase),
                                                             cuda::write_value_ordered);
  return gpu_->check(queued, "cuStreamWriteValue32");
}

Result<void> BounceBuffer::await(cuda::Stream stream, std::uint32_t phase) {
  const cuda::Status queued =
      gpu_->api().stream_wait_value(stream, address(words_.device() + done_at), value(phase), cuda::wait_value_reached);
  return gpu_->check(queued, "cuStreamWaitValue32");
}

Result<void> BounceBuffer::seal(cuda::Stream stream) {
  const cuda::Status status = gpu_->api().event_record(ended_.get(), stream);
  // If recording failed, the buffer counts as in use for ever, because its end is unknown. After a sticky error nothing
  // runs any more.
  if (status == cuda::status::success || cuda::is_sticky(status)) with_stream_.store(false, std::memory_order_release);
  return gpu_->check(status, "cuEventRecord");
}

bool BounceBuffer::landed(std::uint32_t phase) const {
  const std::uint32_t came = word(words_.host() + ready_at).load(std::memory_order_acquire);
  return static_cast<std::int32_t>(came - value(phase)) >= 0;  // the values wrap around
}

void BounceBuffer::let_go(std::uint32_t phase) {
  word(words_.host() + done_at).store(value(phase), std::memory_order_release);
}

void BounceBuffer::release() {
  let_go(last_phase);
  with_host_.store(false, std::memory_order_release);
}

device::PeerBuffers* BounceBuffer::table() const {
  return reinterpret_cast<device::PeerBuffers*>(words_.host() + table_at);
}

const device::PeerBuffers* BounceBuffer::device_table() const {
  return reinterpret_cast<const device::PeerBuffers*>(words_.device() + table_at);
}

bool BounceBuffer::free() {
  if (with_stream_.load(std::memory_order_acquire) || with_host_.load(std::memory_order_acquire)) return false;
  return gpu_->api().event_query(ended_.get()) != cuda::status::not_ready;
}

Result<std::shared_ptr<BouncePool>> BouncePool::open(GpuProcess& process, SegmentTable& segments,
                                                     const cuda::SharedGpu& gpu) {
  auto can = TUTTI_TRY(gpu->driver().device_attribute(gpu->ordinal(), cuda::attribute::stream_memory_operations));
  if (can == 0)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("streams of GPU {} cannot wait for memory of the host (cuStreamWaitValue32), "
                                     "which this call on device memory needs: not all ranks share one GPU and one "
                                     "process, or the call has a count per rank or is a send or receive",
                                     gpu->ordinal())};
  std::shared_ptr<BouncePool> pool(new BouncePool(process, segments, gpu));
  pool->watch_ = cuda::Quiet::Watch(gpu->quiet(), [raw = pool.get()] { return raw->idle(); });
  return pool;
}

BouncePool::~BouncePool() {
  const bool ended = process_.idle_or_keep([this] { return idle(); }, {buffers_.begin(), buffers_.end()});
  watch_ = {};
  for (auto& buffer : buffers_)
    if (ended) give_back(std::move(buffer));
}

/// Its registration ends when it is quiet: with the function that holds it.
void BouncePool::give_back(std::shared_ptr<BounceBuffer> buffer) {
  gpu_->quiet().give_back([gone = std::move(buffer)] {});
}

bool BouncePool::idle() {
  const std::lock_guard lock(mutex_);
  if (buffers_.empty()) return true;
  auto current = cuda::Current::enter(*gpu_);
  return !current || std::ranges::all_of(buffers_, [](const auto& buffer) { return buffer->free(); });
}

/// A batch waits for buffers of earlier batches, but never for its own: all its calls may have to be under way before
/// any of them ends.
bool BouncePool::may_take(std::size_t bytes, std::uint64_t batch) {
  std::size_t all = bytes;
  bool others = false;
  for (const auto& buffer : buffers_) {
    if (buffer->free()) continue;
    all += buffer->bytes();
    others = others || buffer->batch() != batch;
  }
  return !others || all <= pool_bytes_max;
}

/// Frees unused buffers until a new one of `bytes` fits the limit.
void BouncePool::trim(std::size_t bytes) {
  std::size_t all = bytes;
  for (const auto& buffer : buffers_) all += buffer->bytes();
  for (auto at = buffers_.begin(); at != buffers_.end() && all > pool_bytes_max;) {
    if (!(*at)->free()) {
      ++at;
      continue;
    }
    all -= (*at)->bytes();
    give_back(std::move(*at));
    at = buffers_.erase(at);
  }
}

Result<std::shared_ptr<BounceBuffer>> BouncePool::lease(std::size_t bytes, std::uint64_t batch) {
  const std::size_t needed = std::bit_ceil(std::max(bytes, buffer_bytes_min));
  const cuda::Quiet::Queueing queueing(gpu_->quiet());
  const std::lock_guard lock(mutex_);
  if (!may_take(needed, batch)) return std::shared_ptr<BounceBuffer>();
  std::shared_ptr<BounceBuffer>* best = nullptr;
  for (auto& buffer : buffers_)
    if (buffer->bytes() >= needed && (best == nullptr || buffer->bytes() < (*best)->bytes()) && buffer->free())
      best = &buffer;
  if (best == nullptr) {
    trim(needed);
    auto made = BounceBuffer::make(segments_, gpu_, needed, node_);
    if (!made) return made;
    best = &buffers_.emplace_back(*std::move(made));
  }
  (*best)->take(batch);
  return *best;
}

}  // namespace tutti
