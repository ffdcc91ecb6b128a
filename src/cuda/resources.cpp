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
  auto multiprocessors = TUTTI_TRY(gpu->driver().device_attribute(ordinal, attribute::multiprocessors));
  auto cooperative = gpu->driver().device_attribute(ordinal, attribute::cooperative_launch);
  if (!cooperative) return std::move(cooperative).error();
  if (*cooperative == 0)
    return Error{.code = Code::cuda, .what = fmt::format("GPU {} cannot launch cooperative kernels", ordinal)};
  gpu->multiprocessors_ = multiprocessors;
  return SharedGpu(std::move(gpu));
}

Gpu::~Gpu() {
  (void)driver_->api.primary_release(ordinal_);
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
  DeviceMemory memory;
  Status status = gpu->api().memory_allocate(&memory.at_, bytes);
  if (status != status::success && gpu->quiet().try_all())  // there may be room now
    status = gpu->api().memory_allocate(&memory.at_, bytes);
  if (auto made = gpu->check(status, "cuMemAlloc"); !made)
    return Error(made.error()).during(fmt::format("allocate {} bytes of GPU {}", bytes, gpu->ordinal()));
  memory.gpu_ = gpu;
  memory.bytes_ = bytes;
  return memory;
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(at_, other.at_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void DeviceMemory::free() {
  if (at_ == 0) return;
  if (auto current = Current::enter(*gpu_)) (void)gpu_->api().memory_free(std::exchange(at_, 0));
}

DeviceMemory::~DeviceMemory() {
  if (at_ == 0) return;
  gpu_->quiet().give_back([gpu = gpu_, at = at_] {
    if (auto current = Current::enter(*gpu)) (void)gpu->api().memory_free(at);
  });
}

Result<PinnedMemory> PinnedMemory::allocate(const SharedGpu& gpu, std::size_t bytes) {
  PinnedMemory memory;
  void* host = nullptr;
  constexpr unsigned flags = host_memory_portable | host_memory_mapped;
  if (auto made = gpu->check(gpu->api().host_allocate(&host, bytes, flags), "cuMemHostAlloc"); !made)
    return Error(made.error()).during("allocate pinned memory");
  memory.gpu_ = gpu;
  memory.host_ = static_cast<std::byte*>(host);
  memory.bytes_ = bytes;
  std::memset(host, 0, bytes);
  if (auto seen = gpu->check(gpu->api().host_device_address(&memory.device_, host, 0), "cuMemHostGetDevicePointer");
      !seen)
    return seen.error();
  return memory;
}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(host_, other.host_);
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (host_ == nullptr) return;
  gpu_->quiet().give_back([gpu = gpu_, at = host_] {
    if (auto current = Current::enter(*gpu)) (void)gpu->api().host_free(at);
  });
}

Result<Registration> Registration::make(const SharedGpu& gpu, std::byte* at, std::size_t bytes) {
  constexpr unsigned flags = host_register_portable | host_register_mapped;
  if (auto made = gpu->check(gpu->api().host_register(at, bytes, flags), "cuMemHostRegister"); !made)
    return Error(made.error()).during("pin memory of the host");
  Registration registration;
  registration.gpu_ = gpu;
  registration.at_ = at;
  return registration;
}

Registration& Registration::operator=(Registration&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(at_, other.at_);
  return *this;
}

Registration::~Registration() {
  if (at_ == nullptr) return;
  if (auto current = Current::enter(*gpu_)) (void)gpu_->api().host_unregister(at_);
}

Result<OwnStream> OwnStream::create(const SharedGpu& gpu) {
  OwnStream stream;
  const HeldStdio held;
  TUTTI_TRY(gpu->check(gpu->api().stream_create(&stream.stream_, stream_non_blocking), "cuStreamCreate"));
  stream.gpu_ = gpu;
  return stream;
}

OwnStream& OwnStream::operator=(OwnStream&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(stream_, other.stream_);
  return *this;
}

OwnStream::~OwnStream() {
  if (stream_ == nullptr) return;
  if (auto current = Current::enter(*gpu_)) (void)gpu_->api().stream_destroy(stream_);
}

Result<OwnEvent> OwnEvent::create(const SharedGpu& gpu) {
  OwnEvent event;
  TUTTI_TRY(gpu->check(gpu->api().event_create(&event.event_, event_without_timing), "cuEventCreate"));
  event.gpu_ = gpu;
  return event;
}

OwnEvent& OwnEvent::operator=(OwnEvent&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(event_, other.event_);
  return *this;
}

OwnEvent::~OwnEvent() {
  if (event_ == nullptr) return;
  if (auto current = Current::enter(*gpu_)) (void)gpu_->api().event_destroy(event_);
}

}  // namespace tutti::cuda
