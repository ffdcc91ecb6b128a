#include "cuda/peer_memory.h"

#include <algorithm>
#include <cstring>

namespace tutti::cuda {

namespace {

bool same(const IpcHandle& a, const IpcHandle& b) {
  return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

}  // namespace

Result<MemoryLine> Exports::locate(const std::byte* at, std::size_t bytes) {
  const auto address = reinterpret_cast<Address>(at);
  MemoryLine descriptor{.address = address};
  const Api& api = gpu_->api();
  const auto told = [&](Status status, const char* function) -> Result<bool> {
    if (status == status::success) return true;
    if (is_sticky(status)) return gpu_->driver().error(status, function);
    return false;
  };
  Address base = 0;
  std::size_t whole = 0;
  auto ranged = told(api.address_range(&base, &whole, address), "cuMemGetAddressRange");
  if (!ranged) return std::move(ranged).error();
  if (!*ranged || address + bytes > base + whole) return descriptor;
  std::uint64_t id = 0;
  int wanted = pointer_attribute::buffer_id;
  void* value = &id;
  auto known = told(api.pointer_attributes(1, &wanted, &value, base), "cuPointerGetAttributes");
  if (!known) return std::move(known).error();
  if (!*known) return descriptor;

  auto found = std::ranges::find_if(known_, [&](const Known& one) { return one.base == base && one.id == id; });
  if (found == known_.end()) {
    Known made{.base = base, .id = id};
    auto exported = told(api.ipc_export(&made.handle, base), "cuIpcGetMemHandle");
    if (!exported) return std::move(exported).error();
    if (!*exported) return descriptor;
    if (known_.size() == known_max) known_.pop_back();
    found = known_.insert(known_.end(), made);
  }
  descriptor.handle = found->handle;
  descriptor.id = id;
  descriptor.bytes = whole;
  descriptor.offset = address - base;
  descriptor.exported = 1;
  std::rotate(known_.begin(), found, found + 1);
  return descriptor;
}

Result<Address> PeerMapTable::open(const Gpu& gpu, const IpcHandle& handle) {
  const std::lock_guard lock(mutex_);
  for (Open& one : open_)
    if (one.gpu == gpu.ordinal() && same(one.handle, handle)) {
      ++one.users;
      return one.at;
    }
  Open made{.gpu = gpu.ordinal(), .handle = handle, .users = 1};
  const Status opened = gpu.api().ipc_open(&made.at, handle, ipc_lazy_peer_access);
  if (auto open = gpu.check(opened, "cuIpcOpenMemHandle"); !open) return open.error();
  open_.push_back(made);
  return made.at;
}

void PeerMapTable::close(const Gpu& gpu, const IpcHandle& handle) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      open_, [&](const Open& one) { return one.gpu == gpu.ordinal() && same(one.handle, handle); });
  if (found == open_.end() || --found->users > 0) return;
  (void)gpu.api().ipc_close(found->at);
  open_.erase(found);
}

PeerMaps::~PeerMaps() {
  auto current = Current::enter(*gpu_);
  if (!current) return;
  for (const auto& of_one : of_)
    for (const Mapped& mapped : of_one) table_.close(*gpu_, mapped.handle);
}

Result<std::byte*> PeerMaps::map(int rank, const MemoryLine& descriptor, std::size_t bytes) {
  if (descriptor.exported == 0 || descriptor.offset > descriptor.bytes || bytes > descriptor.bytes - descriptor.offset)
    return Error{
        .code = Code::remote, .what = "a rank published an invalid description of its device memory", .peer = rank};
  auto& mapped = of_[static_cast<std::size_t>(rank)];
  auto found = std::ranges::find_if(mapped, [&](const Mapped& one) {
    return one.id == descriptor.id && one.bytes == descriptor.bytes && same(one.handle, descriptor.handle);
  });
  if (found == mapped.end()) {
    if (mapped.size() == mapped_max) {
      table_.close(*gpu_, mapped.back().handle);
      mapped.pop_back();
    }
    auto opened = table_.open(*gpu_, descriptor.handle);
    if (!opened) return std::move(opened).error().during("map device memory of a peer").at_peer(rank);
    const Mapped made{.id = descriptor.id, .handle = descriptor.handle, .at = *opened, .bytes = descriptor.bytes};
    found = mapped.insert(mapped.end(), made);
  }
  std::rotate(mapped.begin(), found, found + 1);
  return reinterpret_cast<std::byte*>(mapped.front().at + descriptor.offset);  // NOLINT: an address of the GPU's
}

}  // namespace tutti::cuda
