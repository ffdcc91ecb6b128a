#include "cuda/peer_memory.h"

#include <algorithm>

#include "base/descriptors.h"

namespace tutti::cuda {
namespace {

/// 0: the driver does not say.
Result<std::uint64_t> id_at(const Gpu& gpu, Address base) {
  std::uint64_t id = 0;
  int wanted = pointer_attribute::buffer_id;
  void* value = &id;
  auto known = TUTTI_TRY(gpu.told(gpu.api().pointer_attributes(1, &wanted, &value, base), "cuPointerGetAttributes"));
  return known ? id : 0;
}

}  // namespace

Result<Allocation> allocation_of(const Gpu& gpu, const std::byte* at, std::size_t bytes) {
  const auto address = reinterpret_cast<Address>(at);
  Allocation found;
  std::size_t whole = 0;
  auto ranged = TUTTI_TRY(gpu.told(gpu.api().address_range(&found.base, &whole, address), "cuMemGetAddressRange"));
  if (!ranged || address + bytes > found.base + whole) return Allocation{};
  found.bytes = whole;
  found.id = TUTTI_TRY(id_at(gpu, found.base));
  return found.id == 0 ? Allocation{} : found;
}

Result<bool> exists(const Gpu& gpu, const Allocation& allocation) {
  return TUTTI_TRY(id_at(gpu, allocation.base)) == allocation.id;
}

Result<bool> export_memory(const Gpu& gpu, const Allocation& allocation, IpcHandle& handle) {
  const HeldStdio held;
  return gpu.told(gpu.api().ipc_export(&handle, allocation.base), "cuIpcGetMemHandle");
}

Result<MemoryDescriptor> describe(const Gpu& gpu, const std::byte* at, std::size_t bytes) {
  MemoryDescriptor line{.address = reinterpret_cast<std::uint64_t>(at)};
  auto found = TUTTI_TRY(allocation_of(gpu, at, bytes));
  if (found.base == 0 || !TUTTI_TRY(export_memory(gpu, found, line.handle))) return line;
  line.id = found.id;
  line.bytes = found.bytes;
  line.offset = line.address - found.base;
  line.exported = 1;
  return line;
}

PeerMapTable::Mapped* PeerMapTable::find(const Gpu& gpu, const IpcHandle& handle) {
  const auto found = std::ranges::find_if(
      mapped_, [&](const Mapped& one) { return one.gpu == gpu.ordinal() && one.handle == handle; });
  return found == mapped_.end() ? nullptr : &*found;
}

Result<Address> PeerMapTable::open(const Gpu& gpu, const IpcHandle& handle, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (Mapped* const known = find(gpu, handle)) {
    if (known->id != id) return Error{.code = Code::invalid_usage, .what = "what was there before is not closed yet"};
    ++known->users;
    return known->at;
  }
  Mapped made{.gpu = gpu.ordinal(), .handle = handle, .id = id, .users = 1};
  const HeldStdio held;
  const Status opened = gpu.api().ipc_open(&made.at, handle, ipc_lazy_peer_access);
  TUTTI_TRY(gpu.check(opened, "cuIpcOpenMemHandle"));
  mapped_.push_back(made);
  return made.at;
}

void PeerMapTable::close(const SharedGpu& gpu, const IpcHandle& handle) {
  {
    const std::lock_guard lock(mutex_);
    Mapped* const known = find(*gpu, handle);
    if (known == nullptr || --known->users > 0) return;
  }
  gpu->quiet().give_back([this, gpu, handle] {
    const auto current = Current::enter(*gpu);
    const std::lock_guard lock(mutex_);
    Mapped* const known = find(*gpu, handle);
    if (known == nullptr || known->users > 0) return;  // closed by now, or opened again
    if (current) (void)gpu->api().ipc_close(known->at);
    mapped_.erase(mapped_.begin() + (known - mapped_.data()));
  });
}

bool PeerMapTable::is_closing(const Gpu& gpu, const IpcHandle& handle, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const Mapped* const known = find(gpu, handle);
  return known != nullptr && known->id != id;
}

Result<PeerMapping> PeerMapping::open(PeerMapTable& table, const SharedGpu& gpu, const IpcHandle& handle,
                                      std::uint64_t id) {
  auto opened = TUTTI_TRY(table.open(*gpu, handle, id));
  PeerMapping mapping;
  mapping.table_ = {&table, {.gpu = gpu, .handle = handle}};
  mapping.at_ = opened;
  return mapping;
}

}  // namespace tutti::cuda
