#include "cuda/areas.h"

namespace tutti::cuda {
namespace {

/// The most bytes of one call that a channel's inbox must hold: no less than share() gives a channel.
constexpr std::size_t one_shot_channel_bytes(std::size_t bytes, int channels) {
  const auto each = (bytes + static_cast<std::size_t>(channels) - 1) / static_cast<std::size_t>(channels);
  return round_up(std::max(each, one_shot_channel_bytes_min));
}

/// As many bytes as the rings of all links have room for.
void add_slots(device::Area& area, std::size_t most, std::size_t of_all) {
  area.slots = ring_slots;
  area.slot_bytes = std::min(most, of_all / ring_slots / area.links()) / alignment * alignment;
}

}  // namespace

device::Area area_for(int ranks, int channels, bool apart) {
  device::Area area{.ranks = static_cast<std::uint32_t>(ranks),
                    .channels = static_cast<std::uint32_t>(channels),
                    .inbox_bytes = alignment + 2 * one_shot_channel_bytes(one_shot_bytes_max(ranks, apart), channels)};
  if (apart) add_slots(area, std::size_t{128} << 10, std::size_t{32} << 20);
  return area;
}

/// Fewer channels with many ranks, whose slots would be short.
device::Area message_area_for(int ranks, int channels) {
  constexpr int most = 16, links_most = 256;
  device::Area area{
      .ranks = static_cast<std::uint32_t>(ranks),
      .channels = static_cast<std::uint32_t>(std::clamp(links_most / ranks, 1, std::min(most, channels)))};
  add_slots(area, std::size_t{64} << 10, std::size_t{16} << 20);
  return area;
}

SyncMemory SyncMemory::of(int ranks) {
  constexpr std::size_t page = 4096;
  SyncMemory memory;
  std::size_t first = 0, second = 0;
  for (int channels = 1; channels <= sync_channels_max; ++channels) {
    const device::Area collectives = area_for(ranks, channels, /*apart=*/true);
    const device::Area messages = message_area_for(ranks, channels);
    first = std::max<std::size_t>(first, collectives.bytes());
    memory.zeroed = std::max<std::size_t>(memory.zeroed, collectives.zeroed_bytes());
    second = std::max<std::size_t>(second, messages.bytes());
    memory.messages_zeroed = std::max<std::size_t>(memory.messages_zeroed, messages.zeroed_bytes());
  }
  memory.messages_offset = round_up(first, page);
  memory.bytes = memory.messages_offset + round_up(second, page);
  return memory;
}

}  // namespace tutti::cuda
