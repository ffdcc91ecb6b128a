#include "choice/memory_use.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace tutti {

MemoryUse::MemoryUse(Access how, int rank_count, const Machine& machine, const Conditions& conditions)
    : access(how),
      ranks(rank_count),
      crowd(std::ceil(static_cast<double>(ranks) / std::max(std::min(conditions.cores, ranks), 1))),
      streamed_bytes(machine.far.streamed_bytes()) {}

CallCosts MemoryUse::costs(std::size_t group_bytes, const Machine& machine, const Conditions& conditions) const {
  Split split(group_bytes, 1, parts);
  if (access == Access::slots) split.tile(conditions.slot_bytes, items_max);
  const auto bytes = static_cast<double>(group_bytes);
  const double own = own_groups * bytes;
  const double block = bytes / parts / static_cast<double>(split.tiles());
  // The memory that a core's ranks access: their own buffers, and those that other ranks expose to them.
  double far = own + moved_groups * bytes;
  if (access == Access::slots)
    far = fifo_peers * static_cast<double>(std::min(split.tiles(), static_cast<std::size_t>(conditions.channels))) *
          conditions.slots * block * items_max;
  // Calls take the payloads of a rank in turn.
  if (access == Access::in_line) far = limits::call_payloads * own;
  AccessCosts byte{.read = machine.read.us_per_byte(crowd * own),
                   .write = machine.write.us_per_byte(crowd * own),
                   .far_read = machine.far.read.us_per_byte(crowd * far),
                   .far_write = machine.far.write.us_per_byte(crowd * far),
                   .pull = machine.pull.us_per_byte(crowd * own, pulling) + machine.read.us_per_byte(0)};
  if (access != Access::mapped) {
    const auto message = machine.far.message_us_per_byte(block, crowd * far, streamed_bytes);
    byte.far_read = message.read;
    byte.far_write = message.write;
  }
  return {.tiles = split.tiles(), .group_bytes = bytes, .block_bytes = block, .own_bytes = own, .byte = byte};
}

}  // namespace tutti
