#include "cuda/resources.h"

#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.h"

namespace tutti::cuda {

Result<SharedGpu> Gpu::open(std::shared_ptr<const Driver> driver, Ordinal ordinal, std::shared_ptr<Quiet> quiet) {
  auto count = TUTTI_TRY(driver->devices());
  if (ordinal < 0 || ordinal >= count)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("GPU {} is none of this process's (0 to {})", ordinal, count - 1)};
  Context context = nullptr;
  const HeldStdio held;  // a context has dozens of descriptors
  TUTTI_TRY(driver->check(driver->api.primary_retain(&context, ordinal), "cuDevicePrimaryCtxRetain"));
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(driver), ordinal, context, std::move(quiet)));
  gpu->multiprocessors_ = TUTTI_TRY(gpu->driver().device_attribute(ordinal, attribute::multiprocessors));
  if (TUTTI_TRY(gpu->driver().device_attribute(ordinal, attribute::cooperative_launch)) == 0)
    return Error{.code = Code::cuda, .what = fmt::format("GPU {} cannot launch cooperative kernels", ordinal)};
  return SharedGpu(std::move(gpu));
}

Gpu::~Gpu() {
  (void)driver_->api.primary_release(ordinal_);
}

Result<bool> Gpu::told(Status status, std::string_view function) const {
  if (is_sticky(status)) return driver_->error(status, function);
  return status == status::success;
}

Result<void> Gpu::copy(void* to, const void* from, std::size_t bytes, Stream stream) const {
  const Status queued = api().copy_async(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream);
  return check(queued, "cuMemcpyAsync");
}

Result<void> Gpu::clear(void* at, std::size_t bytes, Stream stream) const {
  return check(api().set_async(reinterpret_cast<Address>(at), 0, bytes, stream), "cuMemsetD8Async");
}

Result<void> Gpu::synchronize(Stream stream) const {
  return check(api().stream_synchronize(stream), "cuStreamSynchronize");
}

Result<void> Gpu::record(Event event, Stream stream) const {
  return check(api().event_record(event, stream), "cuEventRecord");
}

Result<void> Gpu::follow(Stream stream, Event event) const {
  return check(api().stream_wait(stream, event, 0), "cuStreamWaitEvent");
}

Result<Current> Current::enter(const Gpu& gpu) {
  TUTTI_TRY(gpu.check(gpu.api().context_push(gpu.context()), "cuCtxPushCurrent"));
  int mode = capture_mode_relaxed;
  if (auto exchanged = gpu.check(gpu.api().exchange_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode");
      !exchanged) {
    Context popped = nullptr;
    (void)gpu.api().context_pop(&popped);
    return exchanged.error();
  }
  return Current(gpu, mode);
}

Current::~Current() {
  if (gpu_ == nullptr) return;
  (void)gpu_->api().exchange_capture_mode(&mode_);
  Context popped = nullptr;
  (void)gpu_->api().context_pop(&popped);
}

Result<DeviceMemory> DeviceMemory::allocate(const SharedGpu& gpu, std::size_t bytes) {
  Address at = 0;
  Status status = gpu->api().memory_allocate(&at, bytes);
  if (status != status::success && gpu->quiet().try_all())  // there may be room now
    status = gpu->api().memory_allocate(&at, bytes);
  if (auto made = gpu->check(status, "cuMemAlloc"); !made)
    return Error(made.error()).during(fmt::format("allocate {} bytes of GPU {}", bytes, gpu->ordinal()));
  DeviceMemory memory(gpu, at);
  memory.bytes_ = bytes;
  return memory;
}

Result<PinnedMemory> PinnedMemory::allocate(const SharedGpu& gpu, std::size_t bytes) {
  void* host = nullptr;
  constexpr unsigned flags = host_memory_portable | host_memory_mapped;
  if (auto made = gpu->check(gpu->api().host_allocate(&host, bytes, flags), "cuMemHostAlloc"); !made)
    return Error(made.error()).during("allocate pinned memory");
  PinnedMemory memory(gpu, static_cast<std::byte*>(host));
  memory.bytes_ = bytes;
  std::memset(host, 0, bytes);
  TUTTI_TRY(gpu->check(gpu->api().host_device_address(&memory.device_, host, 0), "cuMemHostGetDevicePointer"));
  return memory;
}

Result<Registration> Registration::make(const SharedGpu& gpu, std::byte* at, std::size_t bytes) {
  constexpr unsigned flags = host_register_portable | host_register_mapped;
  if (auto made = gpu->check(gpu->api().host_register(at, bytes, flags), "cuMemHostRegister"); !made)
    return Error(made.error()).during("pin memory of the host");
  return Registration{{gpu, at}};
}

Result<OwnStream> OwnStream::create(const SharedGpu& gpu) {
  Stream stream = nullptr;
  const HeldStdio held;
  TUTTI_TRY(gpu->check(gpu->api().stream_create(&stream, stream_non_blocking), "cuStreamCreate"));
  return OwnStream{{gpu, stream}};
}

Result<OwnEvent> OwnEvent::create(const SharedGpu& gpu) {
  Event event = nullptr;
  TUTTI_TRY(gpu->check(gpu->api().event_create(&event, event_without_timing), "cuEventCreate"));
  return OwnEvent{{gpu, event}};
}

}  // namespace tutti::cuda
