#include "choice/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/limits.h"
#include "choice/select.h"

namespace tutti {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int steps_for_pace = 4;  ///< of equal ones

/// The ranks of the first rank's host by which rings of the shape enter or leave it.
void add_entry_ranks(std::set<Rank>& ranks, const Shape& shape, const std::vector<int>& hosts) {
  const auto is_here = [&](Rank rank) { return hosts[static_cast<std::size_t>(rank)] == hosts[0]; };
  for (const std::vector<Rank>& ring : shape.rings)
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      if (is_here(from) != is_here(to)) ranks.insert(is_here(from) ? from : to);
    }
}

/// Positions that stand for all: see Classes. Where ranks share hosts, the last of a host has other neighbours than the
/// first.
std::vector<Rank> watched_ranks(Classes classes, const Shape& shape, const std::vector<int>& hosts) {
  std::set<int> from_root{0};
  if (classes != Classes::one && classes != Classes::rings) from_root.insert({1 % shape.ranks, shape.ranks - 1});
  if (classes == Classes::tree) {
    // All ones and all leading digits: the deepest ranks of trees that are numbered from either end. Of very many ranks
    // every third does: those that nobody watches cost as much as the others. Few are all watched.
    const int every = shape.ranks <= members_ranks_max ? 1 : 3;
    int high = 0;
    for (int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(shape.ranks))); power > 0; power /= 2) {
      const bool counts = std::countr_zero(static_cast<unsigned>(power)) % every == 0;
      if (high + power < shape.ranks) high += power;
      if (const int ones = 2 * power - 1; ones < shape.ranks && counts) from_root.insert({ones, high});
    }
  }
  std::set<Rank> ranks;
  for (Rank rank = 0; classes == Classes::tree && shape.ranks <= whole_ranks_max && rank < shape.ranks; ++rank)
    ranks.insert(rank);
  for (const int v : from_root) ranks.insert((v + shape.root) % shape.ranks);
  if (!hosts.empty()) {
    const auto end = std::ranges::find_if(hosts, [&](int host) { return host != hosts[0]; });
    ranks.insert(static_cast<Rank>(end - hosts.begin()) - 1);
    if (classes == Classes::rings) add_entry_ranks(ranks, shape, hosts);
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace

StepCost::StepCost(const Algorithm& algorithm, const Shape& shape, Access access, const Machine& machine,
                   const Conditions& conditions)
    : machine_(machine), conditions_(conditions), use_(access, shape.ranks, machine, conditions) {
  use_.pulling = 1;
  watch(algorithm, shape);
}

void StepCost::watch(const Algorithm& algorithm, const Shape& ranks) {
  Shape shape = positions_of(ranks);
  std::vector<int> hosts;
  if (conditions_.hosts.size() == static_cast<std::size_t>(use_.ranks))
    for (Rank position = 0; position < use_.ranks; ++position)
      hosts.push_back(conditions_.hosts[static_cast<std::size_t>(
          has_positions(ranks) ? ranks.order[static_cast<std::size_t>(position)] : position)]);
  std::vector<int> all_steps;  // by watched rank
  for (const Rank rank : watched_ranks(algorithm.family->classes, shape, hosts)) {
    shape.only = rank;
    RankWork work = work_of_rank(algorithm, shape, use_.access, hosts);
    watched_.push_back(std::move(work.runs));
    double moved = 0, own = work.scratch_groups, peers = 0;
    int steps = 0;
    for (const StepRun& run : watched_.back()) {
      steps += run.times;
      for (const auto& with : run.work.with) {
        moved += run.times * (with.blocks_in + with.blocks_out);
        peers += run.times * (with.messages_in + with.messages_out);
      }
    }
    own += input_groups(shape.collective, use_.ranks, rank, shape.root);
    own += output_groups(shape.collective, use_.ranks, rank, shape.root);
    use_.moved_groups = std::max(use_.moved_groups, moved / work.parts);
    use_.own_groups = std::max(use_.own_groups, own);
    use_.fifo_peers = std::max(use_.fifo_peers, std::min(peers, 2.0 * (use_.ranks - 1)));
    use_.parts = work.parts;
    steps_ = std::max(steps_, steps);
    all_steps.push_back(steps);
  }
  // All have as many steps, idle ones at the end where a rank has fewer.
  for (std::size_t i = 0; i < watched_.size(); ++i)
    if (all_steps[i] < steps_) watched_[i].push_back({.work = {}, .times = steps_ - all_steps[i]});
  shape.only = Shape::everybody;
  if (use_.access == Access::slots && algorithm.family->items != nullptr)
    use_.items_max = std::clamp(algorithm.family->items(shape, algorithm.parameter), 1, limits::items_max);
}

/// As Cost::price.
void StepCost::price(std::size_t group_bytes) {
  call_ = use_.costs(group_bytes, machine_, conditions_);
  block_ = call_.byte.of(call_.block_bytes);
  apart_ = call_.block_bytes * 1e-3 / machine_.wire.gbps;
}

double StepCost::entry_us() const {
  const bool waits = use_.access != Access::in_line && use_.ranks > 1;
  double us = machine_.enter_us;
  if (use_.access == Access::in_line) us += block_.read + block_.far_write;
  if (use_.access != Access::in_line) us += machine_.setup_us;
  us = use_.crowd * us + turns_us();
  return waits ? us + machine_.hop_us + use_.crowd * machine_.line_us * (use_.ranks - 1) : us;
}

double StepCost::send_us(const StepWork& work) const {
  double us = 0;
  for (std::size_t kind = 0; kind < distances; ++kind) {
    const StepWork::Exchanged& with = work.with[kind];
    us += with.messages_out * (kind == 0 ? machine_.message_us : machine_.wire.message_us);
    us += (with.blocks_out - with.merged) * (machine_.pass_us + block_.read);
    us += with.blocks_out * (kind == 0 ? block_.far_write : apart_);
  }
  return us;
}

double StepCost::receive_us(const StepWork& work, std::size_t kind) const {
  const StepWork::Exchanged& with = work.with[kind];
  const double message = kind == 0 ? machine_.message_us : machine_.wire.message_us;
  double us =
      with.passes.count * machine_.pass_us + with.passes.reads * block_.read + with.passes.writes * block_.write;
  switch (use_.access) {
    case Access::slots: us += 2 * message * with.messages_in; break;
    case Access::in_line: us += machine_.line_us * with.messages_in; break;
    case Access::mapped:
    case Access::cma:
      if (with.waits) us += 2 * message * with.messages_in;
      break;
  }
  if (use_.access != Access::cma) return us + with.blocks_in * (kind == 0 ? block_.far_read : apart_);
  // What is copied needs no store besides; what is summed up is copied to a bounce buffer first.
  const bool sums = with.passes.reads > 0 || with.blocks_in > with.passes.count;
  const double calls = sums ? std::ceil(call_.block_bytes / static_cast<double>(machine_.pull.bounce_bytes())) : 1;
  return us + with.blocks_in * (block_.pull + calls * machine_.pull.call_us) -
         (sums ? 0 : with.passes.writes * block_.write);
}

/// All watched ranks do one step: first each sends, then each receives what the slowest of them has sent by then.
void StepCost::step() {
  std::array<bool, distances> sends{};
  for (std::size_t i = 0; i < clocks_.size(); ++i) send(i, sends);
  for (std::size_t kind = 0; kind < distances; ++kind)
    sent_[kind].steps_ago = sends[kind] ? 0 : sent_[kind].steps_ago + 1;
  for (std::size_t i = 0; i < clocks_.size(); ++i)
    for (std::size_t kind = 0; kind < distances; ++kind)
      if (now_[i]->with[kind].blocks_in > 0) receive(i, kind);
}

void StepCost::send(std::size_t i, std::array<bool, distances>& sends) {
  const StepWork& work = *now_[i];
  Clock& clock = clocks_[i];
  const double own =
      work.local.count * machine_.pass_us + work.local.reads * block_.read + work.local.writes * block_.write;
  const double us = use_.crowd * (own + send_us(work));
  if (clock.idle && us > 0) clock = {.now = clock.now, .begun = clock.now, .idle = false};
  clock.now += us;
  clock.busy += us;
  for (std::size_t kind = 0; kind < distances; ++kind) {
    // Without messages, what was made in the step before is there to be read.
    const bool shows = use_.access != Access::slots;
    if (work.with[kind].blocks_out == 0 && !(shows && kind == 0)) continue;
    sent_[kind].at = sends[kind] ? std::max(sent_[kind].at, clock.now) : clock.now;
    sends[kind] = true;
  }
}

void StepCost::receive(std::size_t i, std::size_t kind) {
  const StepWork& work = *now_[i];
  Clock& clock = clocks_[i];
  Sent& sent = sent_[kind];
  const double hop = kind == 1 ? machine_.wire.hop_us : conditions_.cores > 1 ? machine_.hop_us : 0;
  const double us = use_.crowd * receive_us(work, kind) + turns_us();
  if (use_.access == Access::slots || use_.access == Access::in_line || work.with[kind].waits) {
    // Ranks that nobody watches have passed it on since, each at the price of receiving and of sending.
    const double message = kind == 1 ? machine_.wire.message_us + apart_ : machine_.message_us + block_.far_write;
    sent.at += sent.steps_ago * (hop + us + use_.crowd * work.with[kind].blocks_in * message);
    sent.steps_ago = 0;
    clock.now = std::max(clock.now, sent.at + hop);
  }
  if (clock.idle) clock = {.now = clock.now, .begun = clock.now, .idle = false};
  clock.now += us;
  clock.busy += us;
}

/// Goes through the runs of equal steps of all watched ranks side by side.
void StepCost::walk(double bound_us) {
  struct At {
    std::size_t run = 0;
    int done = 0;
  };
  std::vector<At> at(watched_.size());
  for (int left = steps_; left > 0;) {
    int times = left;
    for (std::size_t i = 0; i < at.size(); ++i) {
      now_[i] = &watched_[i][at[i].run].work;
      times = std::min(times, watched_[i][at[i].run].times - at[i].done);
    }
    const int walked = std::min(times, steps_for_pace);
    std::vector<Clock> before;
    for (int step = 0; step < walked; ++step) {
      if (step + 1 == walked) before = clocks_;
      this->step();
    }
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      clocks_[i].now += (times - walked) * (clocks_[i].now - before[i].now);
      clocks_[i].busy += (times - walked) * (clocks_[i].busy - before[i].busy);
      if (clocks_[i].now > bound_us) return;
    }
    for (Sent& sent : sent_) {
      if (sent.steps_ago > 0)
        sent.steps_ago += times - walked;
      else if (times > walked)
        sent.at = std::ranges::max(clocks_, {}, &Clock::now).now;
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i].done += times;
      if (at[i].done == watched_[i][at[i].run].times) at[i] = {.run = at[i].run + 1};
    }
    left -= times;
  }
}

double StepCost::us(std::size_t group_bytes, double bound_us) {
  price(group_bytes);
  const double entered = entry_us();
  clocks_.assign(watched_.size(), {.now = entered});
  now_.resize(watched_.size());
  sent_.fill({.at = entered});
  walk(bound_us);
  double end = entered, pace = 0;
  for (const Clock& clock : clocks_) {
    end = std::max(end, clock.now);
    const double span = clock.idle ? 0 : clock.now - clock.begun;
    pace = std::max({pace, clock.busy, span / conditions_.channels});
  }
  if (end > bound_us) return never;
  end += static_cast<double>(call_.tiles - 1) * pace;
  // Nobody leaves while others use its memory.
  if (use_.access == Access::mapped || use_.access == Access::cma)
    end += machine_.hop_us + use_.crowd * machine_.message_us * std::min(use_.fifo_peers, 2.0 * (use_.ranks - 1));
  return end > bound_us ? never : end;
}

}  // namespace tutti
