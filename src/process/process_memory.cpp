#include "process/process_memory.h"

#include <span>
#include <utility>

#include "base/random.h"

namespace tutti {

Result<std::byte*> ProcessMemory::allocate(std::size_t bytes, bool touch) {
  const int node = places_.memory_node();
  auto memory = segments.allocate(bytes, touch, node);
  places_.tell_memory(node, segments.node_refused());
  return memory;
}

Result<std::shared_ptr<OwnedArea>> ProcessMemory::make_area(const AreaShape& shape) {
  const std::size_t bytes = RankArea::bytes(shape);
  auto base = allocate(bytes, /*touch=*/false);
  if (!base) return std::move(base).error().during("make a rank's shared area");
  auto area = std::make_shared<OwnedArea>(segments, *base, *segments.find(*base, bytes), shape);
  area->area.format();
  TUTTI_TRY(fill_random(std::as_writable_bytes(std::span(&area->area.header().life, 1))));
  const std::lock_guard lock(mutex_);
  std::erase_if(areas_, [](const auto& entry) { return entry.second.expired(); });
  areas_[area->name.id] = area;
  return area;
}

std::shared_ptr<OwnedArea> ProcessMemory::find_area(std::uint32_t segment_id) {
  const std::lock_guard lock(mutex_);
  const auto found = areas_.find(segment_id);
  return found == areas_.end() ? nullptr : found->second.lock();
}

Result<void> ProcessMemory::serve(const ProcessKey& key, Service& service) {
  const std::lock_guard lock(mutex_);
  if (fd_server_) return fd_server_->follow_user();
  auto server = FdServer::open(segments, key);
  if (!server) return std::move(server).error().during("open the descriptor server");
  std::shared_ptr<FdServer> shared = *std::move(server);
  TUTTI_TRY(service.add(shared));
  fd_server_ = std::move(shared);
  return {};
}

}  // namespace tutti
