// The elements of a part of a group, and of a tile of a part, as given by Split::part and Split::tile_of.
#pragma once

#include <cstdint>

#include "kernels/block.h"
#include "kernels/entries.h"

namespace tutti::device {

/// Elements [begin, begin + count) of a group.
struct Extent {
  std::uint64_t begin, count;
};

TUTTI_DEVICE Extent extent_of(const Cut& cut, std::uint32_t part, std::uint64_t tile) {
  const auto least = [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; };
  const auto boundary = [&](std::uint64_t at) {
    return least(cut.count, (at * cut.part_units + least(at, cut.part_rest)) * cut.unit);
  };
  const std::uint64_t begin = boundary(part);
  const std::uint64_t count = boundary(part + 1) - begin;
  if (cut.tile_elements == 0) return {begin, count};
  const std::uint64_t skipped = least(count, tile * cut.tile_elements);
  return {begin + skipped, least(cut.tile_elements, count - skipped)};
}

}  // namespace tutti::device
