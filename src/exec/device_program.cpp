#include "exec/device_program.h"

#include <algorithm>

#include "base/limits.h"
#include "kernels/pass.h"

namespace tutti {

static_assert(device::sources_max == limits::sources_max);

namespace {

/// Verbs that threads of a block may carry out concurrently, each thread for another peer.
bool runs_parallel(Verb verb) {
  return verb != Verb::copy && verb != Verb::reduce && verb != Verb::wait_descriptor;
}

/// The only pass of a plan; null if there is none, if there are several, or if the plan has verbs other than `others`
/// besides it.
const Action* only_pass(const Plan& plan, std::initializer_list<Verb> others) {
  const Action* pass = nullptr;
  for (const Action& action : plan.actions) {
    if (std::ranges::find(others, action.verb) != others.end()) continue;
    if (pass != nullptr || action.verb != Verb::reduce) return nullptr;
    pass = &action;
  }
  return pass;
}

/// Whether the pass reads block `block` of all inputs in the order of ranks, with peers' inputs at places of kind
/// `theirs`.
bool reads_all(const Plan& plan, const Action& pass, Where theirs, std::uint32_t block) {
  if (pass.sources != plan.ranks) return false;
  for (Rank rank = 0; rank < plan.ranks; ++rank) {
    const Place& place = plan.sources(pass)[static_cast<std::size_t>(rank)];
    const bool own = rank == plan.rank;
    if (place.where != (own ? Where::input : theirs) || place.block != block || (!own && place.peer != rank))
      return false;
    if ((place.contribution != 0) != (place.where != Where::peer_payload)) return false;
  }
  return true;
}

/// Whether rank r reduces part r of all inputs and stores the result to all outputs.
bool is_two_shot(const Plan& plan) {
  if (plan.collective != Collective::all_reduce || plan.access != Access::mapped || plan.parts != plan.ranks)
    return false;
  const Action* const pass = only_pass(plan, {Verb::signal, Verb::wait});
  const auto part = static_cast<std::uint32_t>(plan.rank);
  if (pass == nullptr || pass->last == 0 || pass->part != part || !reads_all(plan, *pass, Where::peer_input, part))
    return false;
  std::vector<int> written(static_cast<std::size_t>(plan.ranks));
  for (const Place& place : plan.destinations(*pass)) {
    const bool own = place.where == Where::output;
    if ((!own && place.where != Where::peer_output) || place.block != part) return false;
    ++written[own ? static_cast<std::size_t>(plan.rank) : place.peer];
  }
  return std::ranges::all_of(written, [](int times) { return times == 1; });
}

/// Whether every rank gets all whole inputs and reduces them itself.
bool is_one_shot(const Plan& plan) {
  if (plan.collective != Collective::all_reduce || plan.access != Access::in_line || plan.parts != 1) return false;
  const Action* const pass = only_pass(plan, {Verb::wait_descriptor});
  if (pass == nullptr || pass->last == 0 || !reads_all(plan, *pass, Where::peer_payload, 0)) return false;
  const auto to = plan.destinations(*pass);
  return to.size() == 1 && to[0] == Place{.where = Where::output};
}

/// Of a part, where channels share it.
std::size_t bytes_of_channel(const Split& split, int channels, std::size_t bytes_min) {
  const std::size_t bytes = split.part(0).count * split.element_bytes();
  const std::size_t each = (bytes + static_cast<std::size_t>(channels) - 1) / static_cast<std::size_t>(channels);
  constexpr std::size_t line = 128;  // channels do not share cache lines
  return (std::max(each, bytes_min) + line - 1) / line * line;
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

void share(Split& split, int channels, std::size_t bytes_min) {
  split.tile(bytes_of_channel(split, channels, bytes_min), 1);
}

void share_slots(Split& split, int channels, std::size_t bytes_min, std::size_t slot_bytes, int items) {
  const std::size_t most = bytes_of_channel(split, channels, bytes_min) * static_cast<std::size_t>(std::max(items, 1));
  split.tile(std::min(most, slot_bytes), items);
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
    if (runs_parallel(actions[i].verb))
      while (end < actions.size() && actions[end].verb == actions[i].verb && !met(actions[end].peer)) ++end;
    for (; i < end; ++i) actions[i].parallel = static_cast<std::uint32_t>(end - i);
  }
  return actions;
}

void describe(device::Call& call, const Plan& plan, const Binding& binding) {
  call.cut = cut_of(binding.split);
  call.type = binding.type;
  call.op = binding.op;
  call.ranks = static_cast<std::uint32_t>(plan.ranks);
  call.average = binding.op == ReduceOp::avg && reduces(plan.collective) ? 1 : 0;
  call.windows = plan.access == Access::mapped ? 1 : 0;
  call.scaled = binding.op == ReduceOp::pre_mul_sum && reduces(plan.collective) ? 1 : 0;
}

KernelChoice kernel_for(const Plan& plan, const Binding& binding) {
  const DataType type = reduces(plan.collective) ? binding.type : DataType::uint8;
  if (is_two_shot(plan)) return {.body = device::Body::two_shot, .type = type};
  if (is_one_shot(plan)) return {.body = device::Body::one_shot, .type = type};
  return {.body = device::Body::run_plan, .type = type};
}

}  // namespace tutti
