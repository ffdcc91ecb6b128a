// The buffers of all ranks as cells.
#include "analysis/proof/check_memory.h"

namespace tutti::proof {

BlockCounts block_counts(const Schedule& schedule, Rank rank) {
  const int parts = schedule.parts();
  return {.input = input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()) * parts,
          .output = output_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()) * parts,
          .scratch = schedule.scratch_groups() * parts};
}

Memory::Memory(const Schedule& schedule, int tiles, const std::vector<bool>& in_place)
    : tiles_(static_cast<std::size_t>(tiles)) {
  std::size_t blocks = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    Blocks r{.counts = block_counts(schedule, rank)};
    r.input = blocks;
    r.output = r.input + static_cast<std::size_t>(r.counts.input);
    r.scratch = r.output + static_cast<std::size_t>(r.counts.output);
    blocks = r.scratch + static_cast<std::size_t>(r.counts.scratch);

    const bool both = r.counts.input > 0 && r.counts.output > 0;
    if (both && static_cast<std::size_t>(rank) < in_place.size() && in_place[static_cast<std::size_t>(rank)]) {
      const auto own_group = static_cast<std::size_t>(rank) * schedule.parts();
      switch (facts_of(schedule.collective()).in_place) {
        case InPlace::same: r.output = r.input; break;
        case InPlace::input_in_output: r.input = r.output + own_group; break;
        case InPlace::output_in_input: r.output = r.input + own_group; break;
        case InPlace::by_copy:
        case InPlace::never: break;
      }
    }
    ranks_.push_back(r);
  }
  cells_.resize(blocks * tiles_);
}

void Memory::fill(Rank rank, const Terms& terms, std::span<const Moment> written) {
  const BlockCounts& n = counts(rank);
  const int tiles = static_cast<int>(tiles_);
  for (int tile = 0; tile < tiles; ++tile) {
    const Moment when = written[static_cast<std::size_t>(tile) % written.size()];
    for (int block = 0; block < n.scratch; ++block) at(rank, Buffer::scratch, block, tile).term = Terms::undefined;
    const auto give = [&](Buffer buffer, int block, Terms::Id term) {
      Cell& cell = at(rank, buffer, block, tile);
      cell.term = term;
      cell.written = when;
    };
    for (int block = 0; block < n.output; ++block) give(Buffer::output, block, Terms::undefined);
    for (int block = 0; block < n.input; ++block) give(Buffer::input, block, terms.raw(rank, block));
  }
}

}  // namespace tutti::proof
