#include "choice/cost.h"

#include <algorithm>
#include <cassert>

#include "choice/pass_prices.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

constexpr double never = FifoTimes::never;

/// Tiles of each channel that are simulated: the second half of them gives the pace of all later ones.
constexpr std::size_t tiles_of_channel = 4;

int groups_of(const Plan& plan) {
  return input_groups(plan.collective, plan.ranks, plan.rank, plan.root) +
         output_groups(plan.collective, plan.ranks, plan.rank, plan.root) + plan.scratch_groups;
}

Conditions of_ranks(Conditions conditions, std::size_t ranks) {
  if (conditions.hosts.size() != ranks) conditions.hosts.clear();
  return conditions;
}

}  // namespace

Cost::Cost(std::span<const Plan> plans, const Machine& machine, const Conditions& conditions)
    : plans_(plans),
      machine_(machine),
      loops_(machine.loops.table()),
      conditions_(of_ranks(conditions, plans.size())),
      ranks_(plans.size()),
      use_(plans[0].access, plans[0].ranks, machine, conditions),
      cores_(ranks_, conditions_),
      prices_(ranks_) {
  assert(!plans.empty() && static_cast<std::size_t>(plans[0].ranks) == ranks_);
  assert(conditions.pair_gbps.empty() || conditions.pair_gbps.size() == ranks_ * ranks_);
  use_.parts = plans[0].parts;
  for (const Plan& plan : plans) {
    int peers = 0, moved = 0;
    bool pulls = false;
    for (const Action& action : plan.actions) {
      if (action.verb == Verb::acquire || action.verb == Verb::peek) {
        use_.items_max = std::max(use_.items_max, static_cast<int>(action.items));
        ++peers;
      }
      if (!is_pass(action)) continue;
      const auto far = [&](auto places) { return static_cast<int>(std::ranges::count_if(places, is_far)); };
      moved += far(plan.sources(action)) + far(plan.destinations(action));
      pulls = pulls || (plan.access == Access::cma && far(plan.sources(action)) > 0);
    }
    use_.pulling += (pulls ? 1.0 : 0.0) / static_cast<double>(ranks_);
    use_.own_groups += static_cast<double>(groups_of(plan)) / static_cast<double>(ranks_);
    use_.moved_groups = std::max(use_.moved_groups, static_cast<double>(moved) / plan.parts);
    use_.fifo_peers =
        std::max(use_.fifo_peers, std::min(static_cast<double>(peers), 2.0 * static_cast<double>(ranks_ - 1)));
  }
}

double Cost::us(std::size_t group_bytes, double bound_us) {
  price(group_bytes);
  enter();
  return walk(bound_us);
}

/// Computes the time of each pass of one tile in a call of this size.
void Cost::price(std::size_t group_bytes) {
  call_ = use_.costs(group_bytes, machine_, conditions_);
  walked_ = std::min(call_.tiles, tiles_of_channel * static_cast<std::size_t>(conditions_.channels));
  const PassPrices passes(machine_, loops_, conditions_, call_, use_.ranks);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    prices_[rank].clear();
    for (const Action& action : plans_[rank].actions)
      prices_[rank].push_back(is_pass(action) ? passes.us(plans_[rank], action) : 0);
  }
}

double Cost::hop_us(Rank one, Rank other) const {
  if (conditions_.apart(one, other)) return machine_.wire.hop_us;
  return cores_.count() > 1 ? machine_.hop_us : 0;
}

double Cost::message_us(Rank one, Rank other) const {
  return conditions_.apart(one, other) ? machine_.wire.message_us : machine_.message_us;
}

/// All ranks enter: they publish their call descriptors and, where they access each other's buffers, wait for those of
/// all.
void Cost::enter() {
  const std::size_t channels = use_.access == Access::slots
                                   ? std::min(static_cast<std::size_t>(conditions_.channels), call_.tiles)
                                   : std::size_t{1};
  std::ranges::fill(cores_.all(), Cores::Core{});
  lines_at_.assign(ranks_, 0);
  double published = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    Cores::Core& core = cores_.of(static_cast<Rank>(rank));
    core.now += machine_.enter_us + (core.rank >= 0 ? machine_.switch_us : 0) + payload_us(plans_[rank]);
    if (use_.access != Access::in_line) core.now += machine_.setup_us;
    core.rank = static_cast<Rank>(rank);
    lines_at_[rank] = core.now;
    published = std::max(published, core.now);
  }
  channels_.clear();
  const bool waits = use_.access != Access::in_line && ranks_ > 1;
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    for (std::size_t channel = 0; channel < channels; ++channel)
      channels_.push_back({.rank = static_cast<Rank>(rank),
                           .index = static_cast<int>(channel),
                           .tile = channel,
                           .ready = waits ? published + machine_.hop_us : 0});
  fifos_.restart(channels, ranks_, static_cast<std::size_t>(conditions_.slots));
  signals_.resize(ranks_ * ranks_);
  for (Signals& signals : signals_) {
    signals.raised.clear();
    signals.taken = 0;
  }
  tile_done_.assign(walked_, 0);
  if (!waits) return;
  for (Cores::Core& core : cores_.all()) core.now = std::max(core.now, published + machine_.hop_us);
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    cores_.of(static_cast<Rank>(rank)).now += machine_.line_us * static_cast<double>(ranks_ - 1);
}

/// Of an inline call: copying the input into the call descriptor.
double Cost::payload_us(const Plan& plan) const {
  if (plan.access != Access::in_line) return 0;
  return input_groups(plan.collective, plan.ranks, plan.rank, plan.root) * call_.group_bytes *
         (call_.byte.read + call_.byte.far_write);
}

double Cost::walk(double bound_us) {
  while (Channel* const channel = next()) {
    run(*channel);
    if (cores_.of(channel->rank).now > bound_us) return never;
  }
  double end = 0;
  for (const Cores::Core& core : cores_.all()) end = std::max(end, core.now);
  if (walked_ == call_.tiles) return end;
  const std::size_t half = walked_ / 2;
  const auto done = [this](std::size_t tiles) {
    return *std::max_element(tile_done_.begin(), tile_done_.begin() + static_cast<std::ptrdiff_t>(tiles));
  };
  const double pace = (done(walked_) - done(half)) / static_cast<double>(walked_ - half);
  // Where ranks take turns on a core and slots hold many tiles, each rank does all its simulated tiles in one turn, so
  // that the last rank's tiles seem to follow each other faster than they do.
  return end + std::max(pace, cores_.busiest(prices_)) * static_cast<double>(call_.tiles - walked_);
}

/// The channel that can continue first; none when all are done.
Cost::Channel* Cost::next() {
  Channel* first = nullptr;
  double earliest = never;
  for (Channel& channel : channels_) {
    if (channel.done) continue;
    if (channel.ready == never) channel.ready = ready_at(channel);
    const Cores::Core& core = cores_.of(channel.rank);
    const double start = std::max(core.now + (core.rank == channel.rank ? 0 : machine_.switch_us), channel.ready);
    if (start >= earliest) continue;
    earliest = start;
    first = &channel;
  }
  if (first == nullptr) {
    assert(std::ranges::all_of(channels_, &Channel::done) && "a plan that was proven does not stop");
    return nullptr;
  }
  Cores::Core& core = cores_.of(first->rank);
  core.now = earliest;
  core.rank = first->rank;
  return first;
}

/// Advances the channel until it must wait for an event that has not happened.
void Cost::run(Channel& channel) {
  const Plan& plan = plans_[static_cast<std::size_t>(channel.rank)];
  double& now = cores_.of(channel.rank).now;
  while (!channel.done) {
    if (channel.action == plan.actions.size()) {
      finish_tile(channel, now);
      continue;
    }
    channel.ready = ready_at(channel);
    if (channel.ready > now) return;
    const Action& action = plan.actions[channel.action];
    act(channel, action, now);
    ++channel.action;
  }
}

void Cost::finish_tile(Channel& channel, double now) {
  if (channel.tile < walked_) tile_done_[channel.tile] = std::max(tile_done_[channel.tile], now);
  channel.action = 0;
  channel.tile += static_cast<std::size_t>(std::min(conditions_.channels, static_cast<int>(call_.tiles)));
  channel.done = channel.tile >= walked_;
}

/// The time at which the event happens that the channel's next action waits for.
double Cost::ready_at(const Channel& channel) const {
  const Plan& plan = plans_[static_cast<std::size_t>(channel.rank)];
  if (channel.action >= plan.actions.size()) return 0;
  const Action& action = plan.actions[channel.action];
  const Rank peer = action.peer;
  const double hop = hop_us(channel.rank, peer);
  switch (action.verb) {
    case Verb::acquire: return fifos_.slot_at(fifos_.index(channel.index, channel.rank, peer), hop);
    case Verb::peek: return fifos_.message_at(fifos_.index(channel.index, peer, channel.rank), hop);
    case Verb::wait: {
      const Signals& from = signals_[static_cast<std::size_t>(peer) * ranks_ + static_cast<std::size_t>(channel.rank)];
      return from.raised.size() > from.taken ? from.raised[from.taken] + hop : never;
    }
    case Verb::wait_descriptor: return lines_at_[static_cast<std::size_t>(peer)] + hop;
    case Verb::copy:
    case Verb::reduce:
    case Verb::commit:
    case Verb::release:
    case Verb::settle:
    case Verb::signal: break;
  }
  return 0;
}

/// Executes the action and adds its time to `now`.
void Cost::act(Channel& channel, const Action& action, double& now) {
  const std::size_t out = fifos_.index(channel.index, channel.rank, action.peer);
  const std::size_t in = fifos_.index(channel.index, action.peer, channel.rank);
  const auto rank = static_cast<std::size_t>(channel.rank), peer = static_cast<std::size_t>(action.peer);
  const double message = message_us(channel.rank, action.peer);
  switch (action.verb) {
    case Verb::copy:
    case Verb::reduce: now += prices_[rank][channel.action]; break;
    case Verb::acquire: fifos_.acquire(out); break;
    case Verb::commit:
      now += message;
      fifos_.commit(out, now);
      break;
    case Verb::peek:
      now += message;
      fifos_.peek(in);
      break;
    case Verb::release:
      now += message;
      fifos_.release(in, now);
      break;
    case Verb::settle: break;  // a transport with slots needs no settle
    case Verb::signal:
      now += message;
      signals_[rank * ranks_ + peer].raised.push_back(now);
      break;
    case Verb::wait:
      now += message;
      ++signals_[peer * ranks_ + rank].taken;
      break;
    case Verb::wait_descriptor: now += machine_.line_us; break;
  }
}

}  // namespace tutti
