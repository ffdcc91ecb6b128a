#include "plan/cells.h"

#include <utility>

namespace tutti {
namespace {

constexpr int no_landing = -1;

}  // namespace

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
  first_.push_back(numbers_.size());
}

Contributions::Contributions(const Schedule& schedule, const Cells& cells) : schedule_(schedule), cells_(cells) {
  if (!averages(schedule.collective())) return;
  inputs_.resize(cells.size());
  landing_.resize(cells.size(), no_landing);
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    if (!knows(rank)) continue;
    const int groups = input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root());
    for (int block = 0; block < groups * schedule.parts(); ++block) inputs_[cells.at(rank, {Buffer::input, block})] = 1;
  }
}

void Contributions::step(std::span<const Transfer> transfers) {
  if (inputs_.empty()) return;
  for (const Transfer& t : transfers) {
    if (!knows(t.to)) continue;
    const std::size_t cell = cells_.at(t.to, t.dst);
    if (landing_[cell] == no_landing) {
      landing_[cell] = 0;
      landed_.push_back(cell);
    }
    landing_[cell] += moved_by(t);
  }
  for (const std::size_t cell : landed_) inputs_[cell] = std::exchange(landing_[cell], no_landing);
  landed_.clear();
}

}  // namespace tutti
