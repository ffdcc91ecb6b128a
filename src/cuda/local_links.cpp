#include "cuda/local_links.h"

#include "cuda/areas.h"

namespace tutti::cuda {
namespace {

/// Of one local rank to all ranks whose areas are known, and waits for the copy.
Result<void> write_links(const Gpu& gpu, Rank rank, const device::Area& area, std::span<std::byte* const> areas,
                         device::Link* to, Stream stream) {
  std::vector<device::Link> links(area.links());
  const auto mine = static_cast<std::uint32_t>(rank);
  for (std::uint32_t channel = 0; channel < area.channels; ++channel)
    for (std::uint32_t peer = 0; peer < area.ranks; ++peer)
      if (peer != mine && areas[peer] != nullptr)
        links[area.index(channel, peer)] = area.link(channel, mine, peer, areas[mine], areas[peer]);
  TUTTI_TRY(gpu.copy(to, links.data(), links.size() * sizeof(device::Link), stream));
  return gpu.synchronize(stream);
}

}  // namespace

Result<LocalLinks> LocalLinks::make(const SharedGpu& gpu, const EngineShape& shape, int channels, Stream stream) {
  LocalLinks made{.area = area_for(shape.ranks, channels, shape.synchronises())};
  const std::size_t local = shape.local.size();
  if (shape.synchronises() && local == 1) made.message_area = message_area_for(shape.ranks, channels);
  const std::size_t area_bytes = shape.synchronises() ? 0 : round_up(made.area.bytes());
  const std::size_t link_bytes = round_up(made.area.links() * sizeof(device::Link));
  const std::size_t message_link_bytes = round_up(made.message_area.links() * sizeof(device::Link));
  const std::size_t bytes = local * (area_bytes + link_bytes) + message_link_bytes;
  made.memory = TUTTI_TRY(DeviceMemory::allocate(gpu, bytes));
  TUTTI_TRY(gpu->clear(made.memory.data(), made.memory.bytes(), stream));
  std::vector<std::byte*> areas = shape.areas;
  areas.resize(static_cast<std::size_t>(shape.ranks));
  for (std::size_t i = 0; i < local && !shape.synchronises(); ++i)
    areas[static_cast<std::size_t>(shape.local[i])] = made.memory.data() + i * area_bytes;
  for (std::size_t i = 0; i < local; ++i) {
    made.links.push_back(reinterpret_cast<device::Link*>(made.memory.data() + local * area_bytes + i * link_bytes));
    TUTTI_TRY(write_links(*gpu, shape.local[i], made.area, areas, made.links[i], stream));
  }
  if (made.message_area.slots != 0) {
    const std::size_t offset = SyncMemory::of(shape.ranks).messages_offset;
    for (std::byte*& area : areas)
      if (area != nullptr) area += offset;
    made.message_links = reinterpret_cast<device::Link*>(made.memory.data() + link_bytes);
    TUTTI_TRY(write_links(*gpu, shape.local[0], made.message_area, areas, made.message_links, stream));
  }
  return made;
}

}  // namespace tutti::cuda
