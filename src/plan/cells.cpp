#include "plan/cells.h"

namespace tutti {

Cells::Cells(const Schedule& schedule, bool in_place)
    : first_rank_(schedule.only() == Shape::everybody ? 0 : schedule.only()) {
  const Collective collective = schedule.collective();
  const int ranks = schedule.ranks(), parts = schedule.parts();
  const Rank root = schedule.root();
  const Rank last = schedule.only() == Shape::everybody ? ranks - 1 : schedule.only();
  for (Rank rank = first_rank_; rank <= last; ++rank) {
    for (const int groups : {input_groups(collective, ranks, rank, root), output_groups(collective, ranks, rank, root),
                             schedule.scratch_groups()}) {
      first_.push_back(numbers_.size());
      for (int block = 0; block < groups * parts; ++block) numbers_.push_back(numbers_.size());
    }
    const std::size_t input = first_[first_.size() - 3], output = first_[first_.size() - 2];
    for (std::size_t at = input; in_place && at < output; ++at)
      if (const int same = in_place_block(collective, ranks, parts, rank, root, static_cast<int>(at - input));
          same >= 0)
        numbers_[at] = output + static_cast<std::size_t>(same);
  }
}

}  // namespace tutti
