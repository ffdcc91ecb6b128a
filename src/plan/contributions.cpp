#include "plan/contributions.h"

#include <utility>

namespace tutti {
namespace {

constexpr int no_landing = -1;

}  // namespace

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
