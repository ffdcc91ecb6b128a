#include "exec/device_program.h"

#include <algorithm>

namespace tutti {
namespace {

/// Verbs that threads of a block may carry out side by side, each towards a peer of its own.
bool goes_together(Verb verb) {
  return verb != Verb::copy && verb != Verb::reduce && verb != Verb::wait_line;
}

}  // namespace

device::Cut cut_of(const Split& split) {
  const std::size_t units = (split.count() + split.unit() - 1) / split.unit();
  return {.count = split.count(),
          .unit = split.unit(),
          .part_units = units / split.parts(),
          .part_rest = units % split.parts(),
          .tile_elements = split.tile_elements(),
          .tiles = split.tiles(),
          .stride = split.stride(),
          .parts = static_cast<std::uint32_t>(split.parts()),
          .element_bytes = static_cast<std::uint32_t>(split.element_bytes())};
}

void share(Split& split, int lanes, std::size_t bytes_min) {
  const std::size_t bytes = split.part(0).count * split.element_bytes();
  const std::size_t each = (bytes + static_cast<std::size_t>(lanes) - 1) / static_cast<std::size_t>(lanes);
  constexpr std::size_t line = 128;  // lanes do not meet in one
  split.tile((std::max(each, bytes_min) + line - 1) / line * line, 1);
}

std::vector<Action> device_actions(const Plan& plan) {
  std::vector<Action> actions = plan.actions;
  for (std::size_t i = 0; i < actions.size();) {
    std::size_t end = i + 1;
    const auto met = [&](std::uint16_t peer) {
      return std::any_of(actions.begin() + static_cast<std::ptrdiff_t>(i),
                         actions.begin() + static_cast<std::ptrdiff_t>(end),
                         [peer](const Action& a) { return a.peer == peer; });
    };
    if (goes_together(actions[i].verb))
      while (end < actions.size() && actions[end].verb == actions[i].verb && !met(actions[end].peer)) ++end;
    for (; i < end; ++i) actions[i].together = static_cast<std::uint32_t>(end - i);
  }
  return actions;
}

void describe(device::Call& call, const Plan& plan, const Binding& binding) {
  call.cut = cut_of(binding.split);
  call.type = binding.type;
  call.op = binding.op;
  call.ranks = static_cast<std::uint32_t>(plan.ranks);
  call.average = binding.op == ReduceOp::avg && reduces(plan.collective) ? 1 : 0;
  call.scaled = binding.op == ReduceOp::pre_mul_sum && reduces(plan.collective) ? 1 : 0;
}

KernelChoice kernel_for(const Plan& plan, const Binding& binding) {
  const bool reducing = reduces(plan.collective);
  return {.body = device::Body::run_plan, .type = reducing ? binding.type : DataType::uint8};
}

}  // namespace tutti
