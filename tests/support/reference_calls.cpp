// Runs the plans of all ranks on plain numbers: the user's side of a call, and whose turn it is.
#include <algorithm>

#include "plan/schedule.h"
#include "support/reference_executor.h"

namespace tutti::testing {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

Trial random_trial(const Plan& plan, std::uint64_t seed) {
  Random random(seed);
  Trial trial{.seed = seed};
  if (plan.access == Access::slots) {
    trial.slots = random.below(3);
    trial.tiles = random.between(1, 3);
    trial.channels = random.between(1, std::min(trial.tiles, 2));
  }
  const int mix = random.below(3);  // none, all or some in place
  if (mix > 0)
    for (Rank rank = 0; rank < plan.ranks; ++rank) trial.in_place.push_back(mix == 1 || random.chance(50));
  return trial;
}

ReferenceExecutor::ReferenceExecutor(std::span<const Plan> plans, Expected& expected, const Arithmetic& arithmetic,
                                     const Trial& trial)
    : plans_(plans),
      expected_(expected),
      arithmetic_(arithmetic),
      trial_(trial),
      random_(trial.seed ^ 0x5eed),
      access_(plans[0].access),
      ranks_(plans[0].ranks),
      parts_(plans[0].parts),
      ring_(static_cast<std::uint64_t>(std::max(trial.slots, 1))) {
  int items = 0;
  for (const Plan& plan : plans) items = std::max(items, plan.items_max);
  slot_words_ = index(items) * block_words_max;
  buffers_.resize(index(ranks_));
  lines_.resize(index(trial_.calls * ranks_));
  links_.resize(index(trial_.channels) * index(ranks_) * index(ranks_));
  raised_.resize(index(ranks_ * ranks_));
  taken_.resize(index(ranks_ * ranks_));
  for (Rank rank = 0; rank < ranks_; ++rank) {
    lay_out(rank);
    for (int channel = 0; channel < trial_.channels; ++channel) channels_.push_back({.rank = rank, .channel = channel});
  }
  placed_.resize(channels_.size());
  places_left_ = trial.resident > 0 ? trial.resident : static_cast<int>(channels_.size());
}

void ReferenceExecutor::lay_out(Rank rank) {
  const Plan& plan = plans_[0];
  Buffers& b = buffers_[index(rank)];
  b.input_blocks = input_groups(plan.collective, ranks_, rank, plan.root) * parts_;
  b.output_blocks = output_groups(plan.collective, ranks_, rank, plan.root) * parts_;
  b.output = index(b.input_blocks);
  if (index(rank) < trial_.in_place.size() && trial_.in_place[index(rank)] && b.input_blocks > 0 &&
      b.output_blocks > 0) {
    const Collective c = plan.collective;
    if (c == Collective::all_reduce || c == Collective::reduce || c == Collective::broadcast || c == Collective::scan)
      b.output = b.input = 0;
    if (c == Collective::all_gather || c == Collective::gather) b.output = 0, b.input = index(rank * parts_);
    if (c == Collective::reduce_scatter || c == Collective::scatter) b.output = index(rank * parts_);
  }
  const std::size_t words = index(trial_.tiles) * block_words_max;
  b.user.assign(index(b.input_blocks + b.output_blocks) * words, poison);
  b.scratch.assign(index(plans_[index(rank)].scratch_groups * parts_) * words, poison);
}

/// A rank is in its call as soon as one of its channels has had a turn.
void ReferenceExecutor::begin_call(Rank rank) {
  Buffers& b = buffers_[index(rank)];
  ++b.call;
  b.channels_left = trial_.channels;
  std::vector<Word>& line = lines_[index(b.call * ranks_ + rank)];
  line.assign(index(b.input_blocks) * block_words_max + 1, poison);
  for (int block = 0; block < b.input_blocks; ++block)
    for (int tile = 0; tile < trial_.tiles; ++tile)
      for (int word = 0; word < block_words(block % parts_); ++word) {
        const Word x = arithmetic_.contribution(b.call, rank, block, tile, word);
        b.user[((b.input + index(block)) * index(trial_.tiles) + index(tile)) * block_words_max + index(word)] = x;
        if (tile == 0)
          line[index(block) * block_words_max + index(word)] = arithmetic_.reduces() ? arithmetic_.scaled(x, rank) : x;
      }
  for (Channel& l : channels_)
    if (l.rank == rank) l.state = State::entering, l.tile = l.channel, l.action = 0;
}

/// Windows are touched when all have entered.
bool ReferenceExecutor::may_begin(const Channel& l) const {
  if (access_ != Access::mapped && access_ != Access::cma) return true;
  return std::ranges::all_of(buffers_, [&](const Buffers& b) { return b.call >= buffers_[index(l.rank)].call; });
}

bool ReferenceExecutor::compare(Rank rank) {
  const Buffers& b = buffers_[index(rank)];
  if (expected_call_ != b.call) {
    expected_.compute(arithmetic_, b.call, trial_.tiles);
    expected_call_ = b.call;
  }
  for (int block = 0; block < b.output_blocks; ++block)
    for (int tile = 0; tile < trial_.tiles; ++tile)
      for (int word = 0; word < block_words(block % parts_); ++word) {
        const std::size_t at = (b.output + index(block)) * index(trial_.tiles) + index(tile);
        if (b.user[at * block_words_max + index(word)] != expected_.at(rank, block, tile, word))
          return fail(Outcome::wrong, "rank " + std::to_string(rank) + ", output block " + std::to_string(block) +
                                          ", call " + std::to_string(b.call));
      }
  return true;
}

/// The user has the buffers back, and uses them.
void ReferenceExecutor::end_call(Rank rank) {
  if (!compare(rank)) return;
  Buffers& b = buffers_[index(rank)];
  std::ranges::fill(b.user, poison);
  if (trial_.slots == 0)
    for (int channel = 0; channel < trial_.channels; ++channel)
      for (Rank peer = 0; peer < ranks_; ++peer)
        std::ranges::fill(links_[(index(channel) * index(ranks_) + index(rank)) * index(ranks_) + index(peer)].slots,
                          poison);
  const bool again = b.call + 1 < trial_.calls;
  for (Channel& l : channels_)
    if (l.rank == rank) l.state = again ? State::entering : State::done;
}

/// As a block of a kernel: whoever has a place keeps it until it has finished.
bool ReferenceExecutor::find_place(std::size_t channel) {
  if (placed_[channel]) return true;
  if (places_left_ == 0) return false;
  --places_left_;
  placed_[channel] = 1;
  return true;
}

void ReferenceExecutor::leave_place(std::size_t channel) {
  if (!placed_[channel] || channels_[channel].state < State::finished) return;
  ++places_left_;
  placed_[channel] = 0;
}

InitResult ReferenceExecutor::run() {
  static constexpr int longest_turns[] = {1, 5, 40, 1000};
  const int longest = longest_turns[random_.below(4)];
  const int slow_rank = random_.chance(50) ? random_.below(ranks_) : -1;

  std::vector<std::size_t> order(channels_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (;;) {
    // Whoever can go first in a random order has the turn; the slow rank comes last.
    bool moved = false;
    bool left = false;
    for (const bool slow : {false, true}) {
      for (std::size_t n = order.size(); n > 0 && !moved; --n) {
        std::swap(order[n - 1], order[index(random_.below(static_cast<int>(n)))]);
        Channel& l = channels_[order[n - 1]];
        if ((l.rank == slow_rank) != slow || l.state == State::done) continue;
        left = true;
        if (l.state == State::finished || !find_place(order[n - 1])) continue;
        for (int turns = random_.between(1, longest); turns > 0; --turns) {
          if (l.state == State::finished || l.state == State::done || !turn(l)) break;
          moved = true;
        }
        leave_place(order[n - 1]);
        if (verdict_.outcome != Outcome::right) return verdict_;
      }
    }
    if (!left) return verdict_;
    if (!moved) return {Outcome::stalled, "nobody can go on"};
  }
}

}  // namespace tutti::testing
