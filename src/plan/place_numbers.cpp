#include "plan/place_numbers.h"

#include "plan/schedule.h"

namespace tutti {

PlaceNumbers::PlaceNumbers(const Plan& plan) {
  const auto blocks = [&](int groups) {
    return static_cast<std::size_t>(groups) * static_cast<std::size_t>(plan.parts);
  };
  inputs_ = blocks(input_groups(plan.collective, plan.ranks, plan.rank, plan.root));
  outputs_ = blocks(output_groups(plan.collective, plan.ranks, plan.rank, plan.root));
  count_ = inputs_ + outputs_ + blocks(plan.scratch_groups);
  names_.reserve(plan.places.size());
  for (const Place& place : plan.places) {
    const bool is_input = place.where == Where::input || place.where == Where::peer_input;
    names_.push_back(2 * number(plan, place) + (is_input ? 1 : 0));
  }
}

std::size_t PlaceNumbers::number(const Plan& plan, const Place& place) {
  const auto block = static_cast<int>(place.block);
  const auto own_output = [&](std::size_t at) { return inputs_ + at; };
  switch (place.where) {
    case Where::input: {
      const int same = in_place_block(plan.collective, plan.ranks, plan.parts, plan.rank, plan.root, block);
      return same < 0 ? place.block : own_output(static_cast<std::size_t>(same));
    }
    case Where::output: return own_output(place.block);
    case Where::scratch: return own_output(outputs_ + place.block);
    case Where::peer_input: {
      const int same = in_place_block(plan.collective, plan.ranks, plan.parts, place.peer, plan.root, block);
      return same < 0 ? far_number(place.peer, Where::peer_input, block)
                      : far_number(place.peer, Where::peer_output, same);
    }
    case Where::slot:
    case Where::peer_output:
    case Where::peer_payload: break;
  }
  return far_number(place.peer, place.where, block);
}

std::size_t PlaceNumbers::far_number(Rank owner, Where buffer, int block) {
  const std::uint64_t key = static_cast<std::uint64_t>(owner) << 40 | static_cast<std::uint64_t>(buffer) << 32 |
                            static_cast<std::uint32_t>(block);
  const auto [known, is_new] = far_.try_emplace(key, count_);
  if (is_new) ++count_;
  return known->second;
}

}  // namespace tutti
