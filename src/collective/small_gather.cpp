#include "collective/small_gather.h"

namespace tutti {

SmallGather::SmallGather(Communicator& communicator, std::span<const std::byte> mine, std::uint64_t sequence)
    : mine_(mine.begin(), mine.end()), all_(mine.size() * static_cast<std::size_t>(communicator.ranks())) {
  const Shape shape{.collective = Collective::all_gather, .ranks = communicator.ranks()};
  const Plan& plan = communicator.plans().of(shape, Access::slots, mine_.size(), /*counts=*/false).plan;
  scratch_.resize(static_cast<std::size_t>(plan.scratch_groups) * mine_.size());
  binding_.input = mine_.data();
  binding_.output = all_.data();
  binding_.scratch = scratch_.data();
  binding_.split = Split(mine_.size(), 1, plan.parts);
  binding_.split.tile(communicator.channels().slot_bytes(), plan.items_max);
  binding_.sequence = sequence;
  run_.emplace(plan, binding_, communicator.links());
}

}  // namespace tutti
