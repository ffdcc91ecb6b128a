// The buffers of all ranks as cells.
#include "analysis/proof/check_memory.h"

namespace tutti::proof {

int blocks_of(const Schedule& schedule, Rank rank, Buffer buffer) {
  const Collective collective = schedule.collective();
  const int groups = buffer == Buffer::input    ? input_groups(collective, schedule.ranks(), rank, schedule.root())
                     : buffer == Buffer::output ? output_groups(collective, schedule.ranks(), rank, schedule.root())
                                                : schedule.scratch_groups();
  return groups * schedule.parts();
}

Memory::Memory(const Schedule& schedule, int tiles, const std::vector<bool>& in_place)
    : tiles_(static_cast<std::size_t>(tiles)) {
  std::size_t blocks = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    std::array<Blocks, 3> buffers;
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      const int count = blocks_of(schedule, rank, buffer);
      buffers[static_cast<std::size_t>(buffer)] = {.count = count, .first = blocks};
      blocks += static_cast<std::size_t>(count);
    }
    Blocks& input = buffers[static_cast<std::size_t>(Buffer::input)];
    Blocks& output = buffers[static_cast<std::size_t>(Buffer::output)];
    const bool both = input.count > 0 && output.count > 0;
    if (both && static_cast<std::size_t>(rank) < in_place.size() && in_place[static_cast<std::size_t>(rank)]) {
      const auto own_group = static_cast<std::size_t>(rank) * schedule.parts();
      const InPlace how = facts_of(schedule.collective()).in_place;
      if (how == InPlace::same) output.first = input.first;
      if (how == InPlace::input_in_output) input.first = output.first + own_group;
      if (how == InPlace::output_in_input) output.first = input.first + own_group;
    }
    ranks_.push_back(buffers);
  }
  cells_.resize(blocks * tiles_);
}

void Memory::fill(Rank rank, const Terms& terms, std::span<const Moment> written) {
  const int tiles = static_cast<int>(tiles_);
  for (int tile = 0; tile < tiles; ++tile) {
    const Moment when = written[static_cast<std::size_t>(tile) % written.size()];
    for (int block = 0; block < blocks(rank, Buffer::scratch); ++block)
      at(rank, Buffer::scratch, block, tile).term = Terms::undefined;
    const auto give = [&](Buffer buffer, int block, Terms::Id term) {
      Cell& cell = at(rank, buffer, block, tile);
      cell.term = term;
      cell.written = when;
    };
    for (int block = 0; block < blocks(rank, Buffer::output); ++block) give(Buffer::output, block, Terms::undefined);
    for (int block = 0; block < blocks(rank, Buffer::input); ++block)
      give(Buffer::input, block, terms.raw(rank, block));
  }
}

}  // namespace tutti::proof
