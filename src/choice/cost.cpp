#include "choice/cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/limits.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Tiles of each channel that are simulated: the second half of them gives the pace of all later ones.
constexpr std::size_t tiles_of_channel = 4;

int groups_of(const Plan& plan) {
  return input_groups(plan.collective, plan.ranks, plan.rank, plan.root) +
         output_groups(plan.collective, plan.ranks, plan.rank, plan.root) + plan.scratch_groups;
}

/// The time that one tile takes on the busiest core; `prices` is by rank. Where ranks take turns on a core and slots
/// hold many tiles, each rank does all its simulated tiles in one turn, so that the last rank's tiles seem to follow
/// each other faster than they do.
double busiest(const std::vector<std::vector<double>>& prices, std::size_t cores,
               std::span<const std::size_t> core_of) {
  std::vector<double> us(cores);
  for (std::size_t rank = 0; rank < prices.size(); ++rank)
    us[core_of[rank]] += std::accumulate(prices[rank].begin(), prices[rank].end(), 0.0);
  return *std::ranges::max_element(us);
}

/// The core of each rank: cores are dealt to ranks in turn, host after host, so that a prediction does not depend on
/// how the ranks of hosts are numbered.
std::vector<std::size_t> deal(std::size_t ranks, std::size_t cores, const std::vector<int>& hosts) {
  std::vector<std::size_t> sequence(ranks), core_of(ranks);
  std::iota(sequence.begin(), sequence.end(), 0);
  if (hosts.size() == ranks) std::ranges::stable_sort(sequence, {}, [&](std::size_t rank) { return hosts[rank]; });
  for (std::size_t i = 0; i < ranks; ++i) core_of[sequence[i]] = i % cores;
  return core_of;
}

}  // namespace

Cost::Cost(std::span<const Plan> plans, const Machine& machine, const Conditions& conditions)
    : plans_(plans),
      machine_(machine),
      loops_(machine.loops.table()),
      streamed_bytes_(machine.streamed_bytes()),
      conditions_(conditions),
      ranks_(plans.size()) {
  assert(!plans.empty() && static_cast<std::size_t>(plans[0].ranks) == ranks_);
  assert(conditions.pair_gbps.empty() || conditions.pair_gbps.size() == ranks_ * ranks_);
  cores_.resize(std::min(ranks_, static_cast<std::size_t>(std::max(conditions.cores, 1))));
  core_index_ = deal(ranks_, cores_.size(), conditions.hosts);
  prices_.resize(ranks_);
  for (const Plan& plan : plans) {
    int peers = 0, moved = 0;
    bool pulls = false;
    for (const Action& action : plan.actions) {
      if (action.verb == Verb::acquire || action.verb == Verb::peek) {
        items_max_ = std::max(items_max_, static_cast<int>(action.items));
        ++peers;
      }
      if (!is_pass(action)) continue;
      const auto far = [&](auto places) { return static_cast<int>(std::ranges::count_if(places, is_far)); };
      moved += far(plan.sources(action)) + far(plan.destinations(action));
      pulls = pulls || (plan.access == Access::cma && far(plan.sources(action)) > 0);
    }
    pulling_ += (pulls ? 1.0 : 0.0) / static_cast<double>(ranks_);
    own_groups_ += static_cast<double>(groups_of(plan)) / static_cast<double>(ranks_);
    moved_groups_ = std::max(moved_groups_, static_cast<double>(moved) / plan.parts);
    fifo_peers_ = std::max(fifo_peers_, std::min(static_cast<double>(peers), 2.0 * static_cast<double>(ranks_ - 1)));
  }
}

std::size_t Cost::bytes_moved(std::size_t group_bytes) const {
  return static_cast<std::size_t>(moved_groups_ * static_cast<double>(group_bytes));
}

double Cost::us(std::size_t group_bytes, double bound_us) {
  price(group_bytes);
  enter();
  return walk(bound_us);
}

/// Computes the time of each pass of one tile in a call of this size.
void Cost::price(std::size_t group_bytes) {
  const Plan& first = plans_[0];
  Split split(group_bytes, 1, first.parts);
  if (first.access == Access::slots) split.tile(conditions_.slot_bytes, std::max(items_max_, 1));
  tiles_ = split.tiles();
  walked_ = std::min(tiles_, tiles_of_channel * static_cast<std::size_t>(conditions_.channels));
  const auto bytes = static_cast<double>(group_bytes);
  group_bytes_ = bytes;
  block_bytes_ = bytes / first.parts / static_cast<double>(tiles_);

  // The memory that a core's ranks access: their own buffers, and those that other ranks expose to them.
  const double crowd = std::ceil(static_cast<double>(ranks_) / static_cast<double>(cores_.size()));
  const double own = own_groups_ * bytes;
  double far = own + moved_groups_ * bytes;
  if (first.access == Access::slots)
    far = fifo_peers_ * static_cast<double>(std::min(tiles_, static_cast<std::size_t>(conditions_.channels))) *
          conditions_.slots * block_bytes_ * std::max(items_max_, 1);
  // Calls take the payloads of a rank in turn.
  if (first.access == Access::in_line) far = limits::call_payloads * own_groups_ * bytes;
  read_ = machine_.read.us_per_byte(crowd * own);
  write_ = machine_.write.us_per_byte(crowd * own);
  far_read_ = machine_.far_read.us_per_byte(crowd * far);
  far_write_ = machine_.far_write.us_per_byte(crowd * far);
  if (first.access != Access::mapped) {
    const auto message = machine_.message_us_per_byte(block_bytes_, crowd * far, streamed_bytes_);
    far_read_ = message.read;
    far_write_ = message.write;
  }
  pull_ = machine_.pull_us_per_byte(crowd * own, pulling_) + machine_.read.us_per_byte(0);
  footprint_ = LoopFootprints::of_two(static_cast<std::size_t>(own), static_cast<int>(ranks_));
  write_pulled_ = pulled_write_us();

  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    prices_[rank].clear();
    for (const Action& action : plans_[rank].actions)
      prices_[rank].push_back(is_pass(action) ? pass_us(plans_[rank], action) : 0);
  }
}

double Cost::pass_us(const Plan& plan, const Action& action) const {
  const auto from = plan.sources(action);
  const auto to = plan.destinations(action);
  double us = machine_.pass_us;
  if (const auto of_class = measured_loop(plan, action)) {
    const std::size_t at = LoopFootprints::nearest(footprint_);
    const auto loop = static_cast<std::size_t>(loops_.best[*of_class][at]);
    return us + block_bytes_ * static_cast<double>(from.size() + to.size()) * 1e-3 /
                    machine_.loops.gbps[*of_class][at][loop];
  }
  for (const Place& place : from) us += operand_us(plan, place, true);
  // CMA copies a source directly to its destination if it is not to be combined with others first.
  const bool lands = plan.access == Access::cma && from.size() == 1 && is_far(from[0]);
  const bool pulled = makes_pulled_sums(plan, action);
  for (std::size_t i = lands ? 1 : 0; i < to.size(); ++i)
    us += pulled ? block_bytes_ * write_pulled_ : operand_us(plan, to[i], false);
  if (plan.access == Access::cma) {
    const double calls =
        lands
            ? 1
            : std::ceil(block_bytes_ * static_cast<double>(from.size()) / static_cast<double>(machine_.bounce_bytes()));
    us += calls * machine_.pull_us * static_cast<double>(std::ranges::count_if(from, is_far));
  }
  return us;
}

/// µs per byte of a store to a sum that a peer copies afterwards. Such sums were measured together with their copies.
double Cost::pulled_write_us() const {
  if (footprint_ < PulledFootprints::bytes_min) return write_;
  const std::size_t at = PulledFootprints::nearest(footprint_);
  const auto loop = std::ranges::find(PulledFootprints::loops, loops_.pulled[at]) - PulledFootprints::loops.begin();
  const double both = 1e-3 / machine_.loops.pulled_gbps[at][static_cast<std::size_t>(loop)];
  return std::max(write_, both - read_ - pull_);
}

/// The class of a pass between users' buffers that are too large for the cache; such passes were measured as a whole.
std::optional<std::size_t> Cost::measured_loop(const Plan& plan, const Action& action) const {
  // Measured where all pairs are alike.
  const auto is_slow = [&](bool read) {
    return [&, read](const Place& place) { return is_far(place) && link_us(plan, place, read) > far_read_; };
  };
  if (std::ranges::any_of(plan.sources(action), is_slow(true)) ||
      std::ranges::any_of(plan.destinations(action), is_slow(false)))
    return {};
  if (plan.access != Access::mapped || footprint_ < LoopFootprints::bytes_min || !writes_results(plan, action))
    return {};
  return pass_class(action.sources, action.destinations, !is_far(plan.sources(action)[0]));
}

/// The time that this operand adds to a pass.
double Cost::operand_us(const Plan& plan, const Place& place, bool read) const {
  if (plan.access == Access::cma && is_far(place)) return block_bytes_ * pull_;
  if (is_far(place) && apart(plan.rank, place.peer)) return block_bytes_ * 1e-3 / machine_.wire.gbps;
  if (is_far(place)) return block_bytes_ * std::max(read ? far_read_ : far_write_, link_us(plan, place, read));
  return block_bytes_ * (read ? read_ : write_);
}

/// µs per byte of the link between the rank and the owner of a place; 0: unknown.
double Cost::link_us(const Plan& plan, const Place& place, bool read) const {
  if (conditions_.pair_gbps.empty()) return 0;
  const auto own = static_cast<std::size_t>(plan.rank), peer = static_cast<std::size_t>(place.peer);
  const double gbps = conditions_.pair_gbps[read ? peer * ranks_ + own : own * ranks_ + peer];
  return gbps > 0 ? 1e-3 / gbps : 0;
}

/// Whether two ranks do not share memory.
bool Cost::apart(Rank one, Rank other) const {
  const auto host = [this](Rank rank) { return conditions_.hosts[static_cast<std::size_t>(rank)]; };
  return conditions_.hosts.size() == ranks_ && host(one) != host(other);
}

double Cost::hop_us(Rank one, Rank other) const {
  if (apart(one, other)) return machine_.wire.hop_us;
  return cores_.size() > 1 ? machine_.hop_us : 0;
}

double Cost::message_us(Rank one, Rank other) const {
  return apart(one, other) ? machine_.wire.message_us : machine_.message_us;
}

/// All ranks enter: they publish their call descriptors and, where they access each other's buffers, wait for those of
/// all.
void Cost::enter() {
  const std::size_t channels = plans_[0].access == Access::slots
                                   ? std::min(static_cast<std::size_t>(conditions_.channels), tiles_)
                                   : std::size_t{1};
  std::ranges::fill(cores_, Core{});
  lines_at_.assign(ranks_, 0);
  published_ = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    Core& core = core_of(static_cast<Rank>(rank));
    core.now += machine_.enter_us + (core.rank >= 0 ? machine_.switch_us : 0) + payload_us(plans_[rank]);
    if (plans_[0].access != Access::in_line) core.now += machine_.setup_us;
    core.rank = static_cast<Rank>(rank);
    lines_at_[rank] = core.now;
    published_ = std::max(published_, core.now);
  }
  channels_.clear();
  const bool waits = plans_[0].access != Access::in_line && ranks_ > 1;
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    for (std::size_t channel = 0; channel < channels; ++channel)
      channels_.push_back({.rank = static_cast<Rank>(rank),
                           .index = static_cast<int>(channel),
                           .tile = channel,
                           .ready = waits ? published_ + machine_.hop_us : 0});
  const auto slots = static_cast<std::size_t>(conditions_.slots);
  fifos_.assign(channels * ranks_ * ranks_, {});
  committed_at_.resize(fifos_.size() * slots);
  released_at_.resize(fifos_.size() * slots);
  signals_.resize(ranks_ * ranks_);
  for (auto& raised : signals_) raised.clear();
  taken_.assign(ranks_ * ranks_, 0);
  tile_done_.assign(walked_, 0);
  if (!waits) return;
  for (Core& core : cores_) core.now = std::max(core.now, published_ + machine_.hop_us);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    Core& core = core_of(static_cast<Rank>(rank));
    core.now += machine_.line_us * static_cast<double>(ranks_ - 1);
  }
}

/// Of an inline call: copying the input into the call descriptor.
double Cost::payload_us(const Plan& plan) const {
  if (plan.access != Access::in_line) return 0;
  return input_groups(plan.collective, plan.ranks, plan.rank, plan.root) * group_bytes_ * (read_ + far_write_);
}

double Cost::walk(double bound_us) {
  while (Channel* const channel = next()) {
    run(*channel);
    if (core_of(channel->rank).now > bound_us) return never;
  }
  double end = 0;
  for (const Core& core : cores_) end = std::max(end, core.now);
  if (walked_ == tiles_) return end;
  const std::size_t half = walked_ / 2;
  const auto done = [this](std::size_t tiles) {
    return *std::max_element(tile_done_.begin(), tile_done_.begin() + static_cast<std::ptrdiff_t>(tiles));
  };
  const double pace = (done(walked_) - done(half)) / static_cast<double>(walked_ - half);
  return end + std::max(pace, busiest(prices_, cores_.size(), core_index_)) * static_cast<double>(tiles_ - walked_);
}

/// The channel that can continue first; none when all are done.
Cost::Channel* Cost::next() {
  Channel* first = nullptr;
  double earliest = never;
  for (Channel& channel : channels_) {
    if (channel.done) continue;
    if (channel.ready == never) channel.ready = ready_at(channel);
    const Core& core = core_of(channel.rank);
    const double start = std::max(core.now + (core.rank == channel.rank ? 0 : machine_.switch_us), channel.ready);
    if (start >= earliest) continue;
    earliest = start;
    first = &channel;
  }
  if (first == nullptr) {
    assert(std::ranges::all_of(channels_, &Channel::done) && "a plan that was proven does not stop");
    return nullptr;
  }
  Core& core = core_of(first->rank);
  core.now = earliest;
  core.rank = first->rank;
  return first;
}

/// Advances the channel until it must wait for an event that has not happened.
void Cost::run(Channel& channel) {
  const Plan& plan = plans_[static_cast<std::size_t>(channel.rank)];
  double& now = core_of(channel.rank).now;
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
  channel.tile += static_cast<std::size_t>(std::min(conditions_.channels, static_cast<int>(tiles_)));
  channel.done = channel.tile >= walked_;
}

/// The time at which the event happens that the channel's next action waits for.
double Cost::ready_at(const Channel& channel) const {
  const Plan& plan = plans_[static_cast<std::size_t>(channel.rank)];
  if (channel.action >= plan.actions.size()) return 0;
  const Action& action = plan.actions[channel.action];
  const Rank peer = action.peer;
  const auto slots = static_cast<std::size_t>(conditions_.slots);
  const double hop = hop_us(channel.rank, peer);
  switch (action.verb) {
    case Verb::acquire: {
      const std::size_t at = index(channel, channel.rank, peer);
      const Fifo& fifo = fifos_[at];
      if (fifo.acquired < slots) return 0;
      if (fifo.released + slots <= fifo.acquired) return never;
      return released_at_[at * slots + fifo.acquired % slots] + hop;
    }
    case Verb::peek: {
      const std::size_t at = index(channel, peer, channel.rank);
      const Fifo& fifo = fifos_[at];
      return fifo.committed > fifo.peeked ? committed_at_[at * slots + fifo.peeked % slots] + hop : never;
    }
    case Verb::wait: {
      const std::size_t at = static_cast<std::size_t>(peer) * ranks_ + static_cast<std::size_t>(channel.rank);
      return signals_[at].size() > taken_[at] ? signals_[at][taken_[at]] + hop : never;
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
  const auto slots = static_cast<std::size_t>(conditions_.slots);
  const auto rank = static_cast<std::size_t>(channel.rank), peer = static_cast<std::size_t>(action.peer);
  const double message = message_us(channel.rank, action.peer);
  switch (action.verb) {
    case Verb::copy:
    case Verb::reduce: now += prices_[rank][channel.action]; break;
    case Verb::acquire: ++fifos_[index(channel, channel.rank, action.peer)].acquired; break;
    case Verb::commit: {
      now += message;
      const std::size_t at = index(channel, channel.rank, action.peer);
      committed_at_[at * slots + fifos_[at].committed++ % slots] = now;
      break;
    }
    case Verb::peek:
      now += message;
      ++fifos_[index(channel, action.peer, channel.rank)].peeked;
      break;
    case Verb::release: {
      now += message;
      const std::size_t at = index(channel, action.peer, channel.rank);
      released_at_[at * slots + fifos_[at].released++ % slots] = now;
      break;
    }
    case Verb::settle: break;  // a transport with slots needs no settle
    case Verb::signal:
      now += message;
      signals_[rank * ranks_ + peer].push_back(now);
      break;
    case Verb::wait:
      now += message;
      ++taken_[peer * ranks_ + rank];
      break;
    case Verb::wait_descriptor: now += machine_.line_us; break;
  }
}

}  // namespace tutti
