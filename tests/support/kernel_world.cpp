#include "support/kernel_world.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "exec/device_program.h"
#include "kernels/ops.h"
#include "plan/schedule.h"
#include "support/elements.h"
#include "support/random.h"
#include "support/run_world.h"

namespace tutti::testing {
namespace {

/// Any integer; floats whose sums show in which order they were made, with some special ones.
void fill(std::span<std::byte> to, DataType type, ReduceOp op, std::uint64_t seed) {
  Random random(seed);
  const auto put = [&](std::size_t at, auto value) { std::memcpy(to.data() + at, &value, sizeof value); };
  const std::size_t size = size_of(type);
  const auto some_float = [&] {
    if (random.chance(2)) return random.chance(50) ? std::numeric_limits<float>::infinity() : -0.0f;
    const float fraction = 1.0f + static_cast<float>(random.below(1 << 20)) / static_cast<float>(1 << 20);
    const int exponent = op == ReduceOp::prod ? random.between(-1, 0) : random.between(-3, 3);
    return std::ldexp(random.chance(50) ? fraction : -fraction, exponent);
  };
  for (std::size_t at = 0; at < to.size(); at += size) {
    with_type(type_at(static_cast<std::size_t>(type)), [&]<class T>(T*) {
      if constexpr (std::is_integral_v<T>)
        put(at, static_cast<T>(random.next()));
      else if (op == ReduceOp::avg && random.chance(20))
        put(at, largest<T>());
      else if constexpr (std::is_same_v<T, double>)
        put(at, double{some_float()} * (1 + 0x1p-40));
      else
        put(at, narrow<T>(some_float()));
    });
  }
}

/// The first input block that is an output block too when `rank` works in place; −1, −1 if there is none.
std::pair<int, int> shared_groups(const Plan& plan) {
  const int groups = input_groups(plan.collective, plan.ranks, plan.rank, plan.root);
  for (int i = 0; i < groups; ++i)
    if (const int o = in_place_block(plan.collective, plan.ranks, 1, plan.rank, plan.root, i); o >= 0) return {i, o};
  return {-1, -1};
}

/// The signature, and one tile of elements in words of 8 bytes, each with its flags.
std::uint64_t inbox_bytes_for(const Split& split) {
  return 16 + (split.tile_of(0, 0).count * split.element_bytes() + 7) / 8 * 16;
}

bool same(DataType type, const std::byte* a, const std::byte* b) {
  const std::size_t size = size_of(type);
  if (std::memcmp(a, b, size) == 0) return true;
  return with_type(type_at(static_cast<std::size_t>(type)), [&]<class T>(T*) {  // a NaN's payload is anybody's
    T x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return is_nan(x) && is_nan(y);
  });
}

}  // namespace

std::string KernelCase::text() const {
  return fmt::format("{} {}, {} elements, {} channels, {} slots of {}, misaligned {}, in place {}, {} calls, seed {}",
                     name(type), name(op), count, channels, slots, slot_bytes, misaligned, in_place, calls, seed);
}

KernelWorld::KernelWorld(const std::vector<Plan>& plans, const KernelCase& how) : KernelWorld(plans, plans, how) {}

KernelWorld::KernelWorld(std::vector<Plan> plans, std::vector<Plan> reference, const KernelCase& how)
    : plans_(std::move(plans)),
      reference_(std::move(reference)),
      how_(how),
      ranks_(plans_[0].ranks),
      split_(how.count, size_of(how.type), plans_[0].parts) {
  if (plans_[0].access == Access::slots)
    split_.tile(how.slot_bytes, plans_[0].items_max);
  else
    share(split_, how.channels, 64);
  for (const Plan& plan : plans_) {
    actions_.push_back(device_actions(plan));
    users_.push_back(make_user(plan, static_cast<int>(plan.rank)));
  }
  assert(!single() || how.calls == 1);
  make_links();
  make_call();
}

KernelWorld::User KernelWorld::make_user(const Plan& plan, int rank) const {
  User user;
  const std::size_t group = split_.group_bytes();
  const std::size_t size = size_of(how_.type);
  const auto in = static_cast<std::size_t>(input_groups(plan.collective, ranks_, rank, plan.root));
  const auto out = static_cast<std::size_t>(output_groups(plan.collective, ranks_, rank, plan.root));
  user.input_bytes = in * group;
  user.output_bytes = out * group;
  const std::size_t misaligned = how_.misaligned * size + (how_.misaligned != 0 && rank % 2 != 0 ? size : 0);
  const auto [shared_in, shared_out] = shared_groups(plan);
  const bool in_place = shared_in >= 0 && (how_.in_place == 1 || (how_.in_place == 2 && rank % 2 != 0));
  if (in_place) {
    const std::size_t before_in = static_cast<std::size_t>(shared_out) * group;  // of the input, in the memory
    const std::size_t before_out = static_cast<std::size_t>(shared_in) * group;
    const std::size_t input_at = before_in >= before_out ? before_in - before_out : 0;
    const std::size_t output_at = before_out >= before_in ? before_out - before_in : 0;
    user.memory[0] =
        std::make_unique<AlignedBytes>(user.input_bytes + user.output_bytes + before_in + before_out, misaligned);
    user.input = user.memory[0]->data() + input_at;
    user.output = user.memory[0]->data() + output_at;
  } else {
    user.memory[0] = std::make_unique<AlignedBytes>(user.input_bytes, misaligned);
    user.memory[1] = std::make_unique<AlignedBytes>(user.output_bytes, misaligned);
    user.input = user.memory[0]->data();
    user.output = user.memory[1]->data();
  }
  user.scratch = std::make_unique<AlignedBytes>(static_cast<std::size_t>(plan.scratch_groups) * group, misaligned);
  user.inputs.resize(user.input_bytes * static_cast<std::size_t>(how_.calls));
  user.outputs.resize(user.output_bytes * static_cast<std::size_t>(how_.calls));
  user.poison.assign(user.output_bytes, std::byte{0xa5});
  fill(user.inputs, how_.type, how_.op, how_.seed * 1000 + static_cast<std::uint64_t>(rank));
  fill({reinterpret_cast<std::byte*>(&user.scalar), size}, how_.type, how_.op,
       how_.seed * 2000 + static_cast<std::uint64_t>(rank));
  return user;
}

void KernelWorld::make_links() {
  const auto n = static_cast<std::uint32_t>(ranks_);
  area_ = {.ranks = n,
           .channels = static_cast<std::uint32_t>(how_.channels),
           .slots = static_cast<std::uint32_t>(how_.slots),
           .slot_bytes = how_.slot_bytes,
           .inbox_bytes = plans_[0].access == Access::in_line ? inbox_bytes_for(split_) : 48};
  for (std::uint32_t rank = 0; rank < n; ++rank) areas_.push_back(std::make_unique<AlignedBytes>(area_.bytes()));
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    auto& links = links_.emplace_back(area_.links());
    for (std::uint32_t channel = 0; channel < area_.channels; ++channel)
      for (std::uint32_t peer = 0; peer < n; ++peer)
        if (peer != rank)
          links[area_.index(channel, peer)] =
              area_.link(channel, rank, peer, areas_[rank]->data(), areas_[peer]->data());
    errors_.emplace_back(area_.channels);
  }
}

void KernelWorld::make_call() {
  describe(call_, plans_[0], {.type = how_.type, .op = how_.op, .split = split_});
  call_.abort = &abort_;
  call_.slot_bytes = area_.slot_bytes;
  call_.slots = area_.slots;
  call_.inbox_bytes = area_.inbox_bytes;
  call_.local_ranks = area_.ranks;
  call_.channels = area_.channels;
  call_.synchronises = (plans_[0].access == Access::mapped || how_.apart) && !how_.together ? 1 : 0;
  call_.signature = how_.seed * 0x9e37'79b9'7f4a'7c15u;
  rehearsal_.calls = how_.calls;
  for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
    const Plan& plan = plans_[rank];
    User& user = users_[rank];
    call_.local[rank] = {.actions = actions_[rank].data(),
                         .places = plan.places.data(),
                         .links = links_[rank].data(),
                         .errors = errors_[rank].data(),
                         .input = user.input,
                         .output = user.output,
                         .scratch = user.scratch->data(),
                         .action_count = static_cast<std::uint32_t>(plan.actions.size()),
                         .place_count = device::place_count_of(plan.places.size()),
                         .rank = static_cast<std::uint16_t>(rank)};
    call_.buffers[rank] = {.input = user.input, .output = user.output, .scalar = user.scalar};
    rehearsal_.ranks.push_back({.input = user.input,
                                .inputs = user.inputs.data(),
                                .outputs = user.outputs.data(),
                                .poison = user.poison.data(),
                                .input_bytes = user.input_bytes,
                                .output_bytes = user.output_bytes,
                                .input_groups = input_groups(plan.collective, ranks_, plan.rank, plan.root),
                                .output_groups = output_groups(plan.collective, ranks_, plan.rank, plan.root)});
  }
}

void KernelWorld::offer_windows(const std::vector<Plan>& plans, bool all) {
  constexpr std::uint32_t input_place = 3, output_place = 255;
  assert(how_.apart && (how_.once || how_.channels == 1));
  window_plans_ = plans;
  Split split(how_.count, size_of(how_.type), plans[0].parts);
  share(split, how_.channels, 64);
  call_.choose = 1;
  call_.window_cut = cut_of(split);
  mapped_.resize(plans.size() * device::Offer::places);
  window_actions_.reserve(plans.size());
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = window_plans_[rank];
    User& user = users_[rank];
    // Offers are of places in allocations that begin before them.
    const std::size_t before = 64 * rank;
    mapped_[rank * device::Offer::places + input_place] = user.input - before;
    mapped_[rank * device::Offer::places + output_place] = user.output - before;
    const std::size_t scratch = static_cast<std::size_t>(plan.scratch_groups) * split.group_bytes();
    if (scratch > user.scratch->size()) {
      user.scratch = std::make_unique<AlignedBytes>(scratch, how_.misaligned * size_of(how_.type));
      call_.local[rank].scratch = user.scratch->data();
    }
    const auto& actions = window_actions_.emplace_back(device_actions(plan));
    const bool offers = all || rank + 1 < plans.size();
    call_.by_windows[rank] = {
        .actions = actions.data(),
        .places = plan.places.data(),
        .mapped = mapped_.data(),
        .input = user.input_bytes == 0 ? device::Offer::absent : device::Offer::of(input_place, before),
        .output = !offers                  ? device::Offer::none
                  : user.output_bytes == 0 ? device::Offer::absent
                                           : device::Offer::of(output_place, before),
        .action_count = static_cast<std::uint32_t>(actions.size()),
        .place_count = device::place_count_of(plan.places.size())};
  }
}

void KernelWorld::prepare(int call) {
  for (User& user : users_) {
    std::copy_n(user.poison.data(), user.output_bytes, user.output);
    std::copy_n(user.inputs.data() + static_cast<std::size_t>(call) * user.input_bytes, user.input_bytes, user.input);
  }
}

Launch KernelWorld::launch() {
  prepare(0);
  const KernelChoice choice = kernel_for(plans_[0], {.type = how_.type, .op = how_.op, .split = split_});
  const device::Body body = how_.walk ? device::Body::run_plan : choice.body;
  // Alone in the launch, a rank's inputs are there before it begins.
  return {.body = body, .type = choice.type, .call = &call_, .rehearsal = single() ? nullptr : &rehearsal_};
}

/// The outputs of all ranks after call `call`, by the CPU executor, in the same buffers.
std::vector<std::vector<std::byte>> KernelWorld::expected(int call) {
  World world({.ranks = ranks_, .slots = static_cast<std::size_t>(how_.slots), .slot_bytes = how_.slot_bytes});
  Split split(how_.count, size_of(how_.type), reference_[0].parts);
  if (reference_[0].access == Access::slots) split.tile(how_.slot_bytes, reference_[0].items_max);
  std::vector<PeerMemory> peers;
  std::vector<std::uint64_t> scalars;
  prepare(call);
  for (const User& user : users_) {
    peers.push_back({user.input, user.output, {}});
    scalars.push_back(user.scalar);
  }
  std::vector<Binding> bindings;
  for (const User& user : users_)
    bindings.push_back({.input = user.input,
                        .output = user.output,
                        .scratch = user.scratch->data(),
                        .type = how_.type,
                        .op = how_.op,
                        .split = split,
                        .peers = peers,
                        .scalars = scalars,
                        .sequence = 1});
  std::vector<Run> runs;
  for (std::size_t rank = 0; rank < plans_.size(); ++rank)
    runs.emplace_back(reference_[rank], bindings[rank], world.links(static_cast<int>(rank)));
  run_to_end(runs);
  std::vector<std::vector<std::byte>> outputs;
  for (const User& user : users_) outputs.emplace_back(user.output, user.output + user.output_bytes);
  return outputs;
}

void KernelWorld::set_inbox_uses(std::uint64_t uses) {
  for (int rank = 0; rank < ranks_; ++rank)
    for (int channel = 0; channel < how_.channels; ++channel) link(channel, rank, rank).inbox_uses = uses;
}

void KernelWorld::fill_inboxes(std::uint64_t word) {
  for (const auto& area : areas_)
    for (std::uint64_t at = area_.inbox(0, 0); at + sizeof word <= area_.zeroed_bytes(); at += sizeof word)
      std::memcpy(area->data() + at, &word, sizeof word);
}

std::string KernelWorld::compare() {
  if (single())
    for (User& user : users_) std::copy_n(user.output, user.output_bytes, user.outputs.data());
  const std::size_t size = size_of(how_.type);
  for (int call = 0; call < how_.calls; ++call) {
    const auto wanted = expected(call);
    for (std::size_t rank = 0; rank < users_.size(); ++rank) {
      const User& user = users_[rank];
      const std::byte* const got = user.outputs.data() + static_cast<std::size_t>(call) * user.output_bytes;
      for (std::size_t at = 0; at < user.output_bytes; at += size)
        if (!same(how_.type, got + at, wanted[rank].data() + at))
          return fmt::format("rank {}, call {}: element {} of {} differs", rank, call, at / size,
                             user.output_bytes / size);
    }
  }
  return "";
}

std::string KernelWorld::error() const {
  for (int rank = 0; rank < ranks_; ++rank)
    for (int channel = 0; channel < how_.channels; ++channel) {
      const device::ErrorRecord& e = record(rank, channel);
      if (e.state != device::ErrorRecord::none)
        return fmt::format("rank {}, channel {} waits for rank {} in action {}, step {}, tile {}, verb {}", rank,
                           channel, e.peer, e.action, e.step, e.tile, e.verb);
    }
  return "";
}

}  // namespace tutti::testing
