#include "cuda/virtual_memory.h"

#include <fcntl.h>

#include <cstdint>

#include "base/descriptors.h"

namespace tutti::cuda {
namespace {

AllocationKind kind_on(const Gpu& gpu) {
  return {.handle_types = handle_type_descriptor, .location = {.type = location_device, .id = gpu.ordinal()}};
}

/// A handle of memory, which lives at least as long.
using Handle = Owned<&Api::memory_release, Allocated>;

Result<std::size_t> whole_bytes(const Gpu& gpu, std::size_t bytes) {
  const AllocationKind kind = kind_on(gpu);
  std::size_t unit = 0;
  const Status asked = gpu.api().granularity(&unit, &kind, granularity_minimum);
  TUTTI_TRY(gpu.check(asked, "cuMemGetAllocationGranularity"));
  if (unit == 0) unit = 1;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

bool VirtualMemory::is_available(const Gpu& gpu) {
  for (const int one : {attribute::virtual_memory, attribute::descriptors_of_memory})
    if (const auto has = gpu.driver().device_attribute(gpu.ordinal(), one); !has || *has == 0) return false;
  return true;
}

Result<VirtualMemory::Created> VirtualMemory::create(const SharedGpu& gpu, std::size_t bytes) {
  auto whole = TUTTI_TRY(whole_bytes(*gpu, bytes));
  const AllocationKind kind = kind_on(*gpu);
  Allocated allocated = 0;
  const HeldStdio held;
  const Status created = gpu->api().memory_create(&allocated, whole, &kind, 0);
  TUTTI_TRY(gpu->check(created, "cuMemCreate"));
  const Handle handle(gpu, allocated);
  Created result;
  int descriptor = -1;
  const Status exported = gpu->api().memory_export(&descriptor, allocated, handle_type_descriptor, 0);
  TUTTI_TRY(gpu->check(exported, "cuMemExportToShareableHandle"));
  result.descriptor = UniqueFd(above_stdio(descriptor));
  (void)::fcntl(result.descriptor.get(), F_SETFD, FD_CLOEXEC);
  TUTTI_TRY(result.memory.map(gpu, allocated, whole));
  return result;
}

Result<VirtualMemory> VirtualMemory::open(const SharedGpu& gpu, int descriptor, std::size_t bytes) {
  Allocated allocated = 0;
  const HeldStdio held;
  auto* const passed = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));  // NOLINT: CUDA's way
  const Status imported = gpu->api().memory_import(&allocated, passed, handle_type_descriptor);
  TUTTI_TRY(gpu->check(imported, "cuMemImportFromShareableHandle"));
  const Handle handle(gpu, allocated);
  VirtualMemory memory;
  TUTTI_TRY(memory.map(gpu, allocated, bytes));
  return memory;
}

Result<void> VirtualMemory::map(const SharedGpu& gpu, Allocated memory, std::size_t bytes) {
  const Api& api = gpu->api();
  const Status reserved = api.addresses_reserve(&at_, bytes, 0, 0, 0);
  TUTTI_TRY(gpu->check(reserved, "cuMemAddressReserve"));
  gpu_ = gpu;
  bytes_ = bytes;
  TUTTI_TRY(gpu->check(api.memory_map(at_, bytes, 0, memory, 0), "cuMemMap"));
  mapped_ = true;
  return allow(*gpu, at_, bytes);
}

Result<void> VirtualMemory::allow(const Gpu& gpu, Address at, std::size_t bytes) {
  const AccessOf own{.location = {.type = location_device, .id = gpu.ordinal()}, .flags = access_read_write};
  return gpu.check(gpu.api().memory_allow(at, bytes, &own, 1), "cuMemSetAccess");
}

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(at_, other.at_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

VirtualMemory::~VirtualMemory() {
  if (at_ == 0) return;
  auto current = Current::enter(*gpu_);
  if (!current) return;
  if (mapped_) (void)gpu_->api().memory_unmap(at_, bytes_);
  (void)gpu_->api().addresses_free(at_, bytes_);
}

}  // namespace tutti::cuda
