// From the global view to one rank's program.
#include "plan/lower.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "base/limits.h"
#include "plan/counts.h"
#include "plan/dependencies.h"
#include "plan/jobs.h"

namespace tutti {
namespace {

/// A block sent in a message, in the order of the message.
struct Item {
  Ref ref;
  int part;
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Jobs& jobs, Rank rank, Reach reach);
  Plan plan(const Flags& flags);  ///< flags: windows and pulls only

 private:
  void fifo();
  void fifo_step(int step, std::span<const int> jobs);
  void lines();
  void windows(const Flags& flags);

  void make(const Job& job);
  void pass(const Job& job, std::span<const Place> sources, Place destination, bool last);
  void copy_item(const Item& item, Rank peer, int index, int step);
  void verb(Verb verb, Rank peer, int step, int items = 0);
  Place source(const Job& job, const Operand& operand) const;
  Place own(Ref ref, bool read) const;
  int distance(Rank peer) const { return (peer - rank_ + schedule_.ranks()) % schedule_.ranks(); }

  const Schedule& schedule_;
  Rank rank_;
  const Jobs& jobs_;
  Plan plan_;
  std::vector<std::map<Rank, std::vector<Item>>> sent_;  // by step
  std::vector<std::map<Rank, int>> received_;            // by step: items from each peer
};

Lowering::Lowering(const Schedule& schedule, const Jobs& jobs, Rank rank, Reach reach)
    : schedule_(schedule), rank_(rank), jobs_(jobs) {
  plan_.collective = schedule.collective();
  plan_.reach = reach;
  plan_.ranks = schedule.ranks();
  plan_.rank = rank;
  plan_.root = schedule.root();
  plan_.parts = schedule.parts();
  plan_.scratch_groups = schedule.scratch_groups();
  plan_.direct = direct(schedule);
}

Plan Lowering::plan(const Flags& flags) {
  switch (plan_.reach) {
    case Reach::line: lines(); break;
    case Reach::fifo: fifo(); break;
    case Reach::window:
    case Reach::pull: windows(flags); break;
  }
  return std::move(plan_);
}

void Lowering::fifo() {
  std::map<std::pair<Rank, Rank>, int> items;  // of the messages of one step
  int step = -1;
  for (const Transfer& t : schedule_.transfers()) {
    assert(t.step >= step && "steps are in order");
    if (t.step != step) items.clear();
    step = t.step;
    sent_.resize(static_cast<std::size_t>(step) + 1);
    received_.resize(static_cast<std::size_t>(step) + 1);
    if (t.from == t.to) continue;
    plan_.items_max = std::max(plan_.items_max, ++items[{t.from, t.to}]);
    if (t.from == rank_) sent_.back()[t.to].push_back({t.src, t.src.block % schedule_.parts()});
    if (t.to == rank_) ++received_.back()[t.from];
  }

  std::span<const int> left = jobs_.of(rank_);
  for (step = 0; step < static_cast<int>(sent_.size()); ++step) {
    std::size_t now = 0;
    while (now < left.size() && jobs_.job(left[now]).step == step) ++now;
    fifo_step(step, left.first(now));
    left = left.subspan(now);
  }
}

/// Sends, then passes as their messages come, then waits until the sent ones are taken.
void Lowering::fifo_step(int step, std::span<const int> jobs) {
  const auto& messages = sent_[static_cast<std::size_t>(step)];
  std::vector<Rank> peers;
  for (const auto& [peer, items] : messages) peers.push_back(peer);
  std::ranges::sort(peers, {}, [this](Rank peer) { return distance(peer); });
  for (const Rank peer : peers) {
    const std::vector<Item>& items = messages.at(peer);
    verb(Verb::acquire, peer, step, static_cast<int>(items.size()));
    for (int i = 0; i < static_cast<int>(items.size()); ++i)
      copy_item(items[static_cast<std::size_t>(i)], peer, i, step);
    verb(Verb::commit, peer, step);
  }

  const std::map<Rank, int>& sizes = received_[static_cast<std::size_t>(step)];
  std::map<Rank, int> unread;
  for (const int index : jobs) {
    const Job& job = jobs_.job(index);
    for (const Operand& operand : job.sources) {
      if (operand.rank == rank_) continue;
      const auto [at, is_new] = unread.try_emplace(operand.rank, sizes.at(operand.rank));
      if (is_new) verb(Verb::peek, operand.rank, step, at->second);
    }
    make(job);
    for (const Operand& operand : job.sources)
      if (operand.rank != rank_ && --unread.at(operand.rank) == 0) verb(Verb::release, operand.rank, step);
  }
  for (const Rank peer : peers) verb(Verb::settle, peer, step);
}

void Lowering::lines() {
  std::vector<bool> open(static_cast<std::size_t>(schedule_.ranks()));
  for (const int index : jobs_.of(rank_)) {
    const Job& job = jobs_.job(index);
    for (const Operand& operand : job.sources) {
      if (operand.rank == rank_ || open[static_cast<std::size_t>(operand.rank)]) continue;
      verb(Verb::wait_line, operand.rank, job.step);
      open[static_cast<std::size_t>(operand.rank)] = true;
    }
    make(job);
  }
}

void Lowering::windows(const Flags& flags) {
  auto signal = flags.signals.begin();
  auto wait = flags.waits.begin();
  const std::vector<int>& own = jobs_.of(rank_);
  const int end = static_cast<int>(own.size());
  for (int position = 0; position <= end; ++position) {
    const bool at_end = position == end;
    const int step =
        at_end ? std::max(schedule_.steps() - 1, 0) : jobs_.job(own[static_cast<std::size_t>(position)]).step;
    for (; wait != flags.waits.end() && wait->position == position; ++wait) verb(Verb::wait, wait->peer, step);
    if (at_end) break;
    make(jobs_.job(own[static_cast<std::size_t>(position)]));
    for (; signal != flags.signals.end() && signal->position == position; ++signal)
      verb(Verb::signal, signal->peer, step);
  }
}

void Lowering::make(const Job& job) {
  std::vector<Place> sources;
  sources.reserve(job.sources.size());
  for (const Operand& operand : job.sources) sources.push_back(source(job, operand));
  Place destination = own(job.dst, false);
  if (job.to != rank_) {
    destination.where = Where::peer_output;
    destination.peer = static_cast<std::uint16_t>(job.to);
  }

  // A long reduction is a chain through the last scratch group: in place, the destination may be a later source.
  const int part = job.dst.block % schedule_.parts();
  const Place so_far = own({Buffer::scratch, (schedule_.scratch_groups() - 1) * schedule_.parts() + part}, false);
  std::span<const Place> left = sources;
  std::vector<Place> now;
  while (!left.empty()) {
    const std::size_t taken = std::min<std::size_t>(left.size(), limits::sources_max - now.size());
    now.insert(now.end(), left.begin(), left.begin() + static_cast<std::ptrdiff_t>(taken));
    left = left.subspan(taken);
    assert(left.empty() || schedule_.chained());
    pass(job, now, left.empty() ? destination : so_far, job.complete && left.empty());
    now = {so_far};
  }
}

void Lowering::pass(const Job& job, std::span<const Place> sources, Place destination, bool last) {
  plan_.actions.push_back({.verb = job.reduce ? Verb::reduce : Verb::copy,
                           .last = static_cast<std::uint8_t>(last),
                           .sources = static_cast<std::uint16_t>(sources.size()),
                           .destinations = 1,
                           .first = static_cast<std::uint32_t>(plan_.places.size()),
                           .part = static_cast<std::uint32_t>(job.dst.block % schedule_.parts()),
                           .step = static_cast<std::uint32_t>(job.step)});
  plan_.places.insert(plan_.places.end(), sources.begin(), sources.end());
  plan_.places.push_back(destination);
}

void Lowering::copy_item(const Item& item, Rank peer, int index, int step) {
  plan_.actions.push_back({.verb = Verb::copy,
                           .sources = 1,
                           .destinations = 1,
                           .first = static_cast<std::uint32_t>(plan_.places.size()),
                           .part = static_cast<std::uint32_t>(item.part),
                           .step = static_cast<std::uint32_t>(step)});
  plan_.places.push_back(own(item.ref, true));
  plan_.places.push_back(
      {.where = Where::slot, .peer = static_cast<std::uint16_t>(peer), .block = static_cast<std::uint32_t>(index)});
}

void Lowering::verb(Verb verb, Rank peer, int step, int items) {
  plan_.actions.push_back({.verb = verb,
                           .peer = static_cast<std::uint16_t>(peer),
                           .items = static_cast<std::uint32_t>(items),
                           .step = static_cast<std::uint32_t>(step)});
}

Place Lowering::source(const Job& job, const Operand& operand) const {
  if (operand.rank == rank_) return own(operand.ref, true);
  Place place{.peer = static_cast<std::uint16_t>(operand.rank), .block = static_cast<std::uint32_t>(operand.ref.block)};
  switch (plan_.reach) {
    case Reach::fifo:
      place.where = Where::slot;
      place.block = static_cast<std::uint32_t>(operand.item);
      break;
    case Reach::line: place.where = Where::peer_line; break;
    case Reach::window:
    case Reach::pull:
      assert(job.maker == rank_ && operand.ref.buffer != Buffer::scratch);
      place.where = operand.ref.buffer == Buffer::input ? Where::peer_input : Where::peer_output;
      place.leaf = place.where == Where::peer_input && reduces(plan_.collective);
      break;
  }
  return place;
}

Place Lowering::own(Ref ref, bool read) const {
  static_assert(static_cast<int>(Buffer::scratch) == static_cast<int>(Where::scratch));
  const bool leaf = read && ref.buffer == Buffer::input && reduces(plan_.collective);
  return {.where = static_cast<Where>(ref.buffer),
          .leaf = static_cast<std::uint8_t>(leaf),
          .block = static_cast<std::uint32_t>(ref.block)};
}

bool by_flags(Reach reach) {
  return reach == Reach::window || reach == Reach::pull;
}

std::vector<Plan> lower(const Schedule& schedule, std::span<const Rank> ranks, Reach reach) {
  const Jobs jobs(schedule, reach);
  assert(jobs.possible());
  std::vector<Flags> of_ranks(ranks.size());
  if (by_flags(reach)) of_ranks = flags(schedule, jobs, ranks);
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    plans.push_back(Lowering(schedule, jobs, ranks[i], reach).plan(of_ranks[i]));
  return plans;
}

}  // namespace

bool lowers_to(const Schedule& schedule, Reach reach) {
  const Jobs jobs(schedule, reach);
  return jobs.possible() && !(by_flags(reach) && races(schedule, jobs));
}

Plan lower(const Schedule& schedule, Rank rank, Reach reach) {
  return std::move(lower(schedule, {&rank, 1}, reach)[0]);
}

std::vector<Plan> lower_all(const Schedule& schedule, Reach reach) {
  std::vector<Rank> ranks(static_cast<std::size_t>(schedule.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return lower(schedule, ranks, reach);
}

}  // namespace tutti
