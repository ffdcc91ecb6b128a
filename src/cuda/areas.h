// How the memory by which the kernels of ranks synchronise is laid out.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "kernels/area.h"

namespace tutti::cuda {

/// Where memory is divided: as the driver aligns allocations.
inline constexpr std::size_t alignment = 256;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to = alignment) {
  return (bytes + to - 1) / to * to;
}

/// Messages that a ring of slots holds.
inline constexpr int ring_slots = 4;

/// Blocks of a rank's synchronising kernels. Those of all communicators of a GPU must fit it together.
inline constexpr int sync_channels_max = 32;

/// A plan of Access::in_line serves calls of fewer bytes. Between launches (`apart`) it is the fastest for longer, as
/// all other plans synchronise twice, until what all ranks store for all others takes more time. Measured on an H100.
constexpr std::size_t one_shot_bytes_max(int ranks, bool apart) {
  constexpr std::size_t least = std::size_t{64} * 1024, of_all = std::size_t{1} << 20;
  return apart ? std::max(least, std::bit_floor(of_all / static_cast<std::size_t>(ranks))) : least;
}
/// A channel has no fewer bytes of such a call.
inline constexpr std::size_t one_shot_channel_bytes_min = 2 * 1024;

/// For collectives by so many channels. `apart`: some ranks are in other launches, so there are slots, of as many bytes
/// as there is room for.
device::Area area_for(int ranks, int channels, bool apart);

/// For sends and receives of ranks with so many channels, of which messages use some.
device::Area message_area_for(int ranks, int channels);

/// The areas of a rank with synchronising kernels, one behind the other. Enough for any number of channels up to
/// sync_channels_max, so that ranks know the offsets before they have agreed on one.
struct SyncMemory {
  std::size_t zeroed = 0;           ///< bytes of the first area that must be zero before any peer knows of it
  std::size_t messages_offset = 0;  ///< of the second area
  std::size_t messages_zeroed = 0;
  std::size_t bytes = 0;

  static SyncMemory of(int ranks);
};

}  // namespace tutti::cuda
