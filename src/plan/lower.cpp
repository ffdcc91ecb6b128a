// From a schedule of all ranks to one rank's plan.
#include "plan/lower.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <span>
#include <utility>

#include "base/limits.h"
#include "plan/counts.h"
#include "plan/dependencies.h"
#include "plan/jobs.h"

namespace tutti {
namespace {

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Jobs& jobs, Rank rank, Access access);
  Plan plan(const Flags& flags);  ///< flags: mapped and cma only

 private:
  void fifo();
  void fifo_step(int step, std::span<const Sent> sent, std::span<const int> jobs);
  bool send(int step, std::span<const Sent> messages, int turn);
  void receive(int step, std::span<const int> jobs);
  void lines();
  void windows(const Flags& flags);

  void make(const Job& job);
  void pass(const Job& job, std::span<const Place> sources, Place destination, int inputs);
  void copy_item(const Sent& item, int index);
  void verb(Verb verb, Rank peer, int step, int items = 0);
  Place source(const Job& job, const Operand& operand) const;
  Place own(Ref ref, bool read) const;
  int distance(Rank peer) const { return (peer - rank_ + schedule_.ranks()) % schedule_.ranks(); }

  const Schedule& schedule_;
  Rank rank_;
  const Jobs& jobs_;
  Plan plan_;
  struct Received {
    int items = 0;
    int read = 0;  // or the message being read
    int done = 0;
  };
  std::vector<Received> message_from_;  // by peer, in this step
  std::vector<Sent> messages_;          // of this step
  std::vector<Place> sources_;          // of this job
};

Lowering::Lowering(const Schedule& schedule, const Jobs& jobs, Rank rank, Access access)
    : schedule_(schedule), rank_(rank), jobs_(jobs), message_from_(static_cast<std::size_t>(schedule.ranks())) {
  plan_.collective = schedule.collective();
  plan_.access = access;
  plan_.ranks = schedule.ranks();
  plan_.rank = rank;
  plan_.root = schedule.root();
  plan_.parts = schedule.parts();
  plan_.scratch_groups = schedule.scratch_groups();
}

Plan Lowering::plan(const Flags& flags) {
  switch (plan_.access) {
    case Access::in_line: lines(); break;
    case Access::slots: fifo(); break;
    case Access::mapped:
    case Access::cma: windows(flags); break;
  }
  return std::move(plan_);
}

void Lowering::fifo() {
  plan_.items_max = std::min(jobs_.items_max(), limits::items_max);
  std::span<const Sent> sent = jobs_.sent_by(rank_);
  std::span<const int> made = jobs_.of(rank_);
  // As many as there are where a message has one block and a pass reads one.
  const std::size_t blocks = sent.size(), jobs = made.size();
  plan_.actions.reserve(4 * blocks + 3 * jobs);
  plan_.places.reserve(2 * blocks + 3 * jobs);
  for (int step = 0; step < schedule_.steps(); ++step) {
    const auto of_step = [step](int at) { return at == step; };
    const auto sends = std::ranges::find_if_not(sent, of_step, &Sent::step) - sent.begin();
    const auto passes =
        std::ranges::find_if_not(made, of_step, [this](int index) { return jobs_.job(index).step; }) - made.begin();
    fifo_step(step, sent.first(static_cast<std::size_t>(sends)), made.first(static_cast<std::size_t>(passes)));
    sent = sent.subspan(static_cast<std::size_t>(sends));
    made = made.subspan(static_cast<std::size_t>(passes));
  }
}

/// Turn by turn: sends, then makes the passes as their messages arrive. At the end waits until the messages are taken.
void Lowering::fifo_step(int step, std::span<const Sent> sent, std::span<const int> jobs) {
  std::vector<Sent>& messages = messages_;
  messages.assign(sent.begin(), sent.end());
  const auto far = [this](const Sent& item) { return distance(item.to); };
  if (!std::ranges::is_sorted(messages, {}, far)) std::ranges::stable_sort(messages, {}, far);
  bool sends = true;
  for (int turn = 0; sends || !jobs.empty(); ++turn) {
    sends = send(step, messages, turn);
    const auto end = std::ranges::find_if(jobs, [&](int index) { return jobs_.job(index).turn > turn; });
    const auto count = static_cast<std::size_t>(end - jobs.begin());
    receive(step, jobs.first(count));
    jobs = jobs.subspan(count);
  }
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (i == 0 || messages[i].to != messages[i - 1].to) verb(Verb::settle, messages[i].to, step);
}

/// `messages`: of all turns, each peer's blocks together. False if none has this turn.
bool Lowering::send(int step, std::span<const Sent> messages, int turn) {
  bool sends = false;
  for (auto begin = messages.begin(); begin != messages.end();) {
    const auto end = std::find_if(begin, messages.end(), [&](const Sent& item) { return item.to != begin->to; });
    const auto first = begin + std::min<std::ptrdiff_t>(end - begin, turn * std::ptrdiff_t{limits::items_max});
    const auto last = first + std::min<std::ptrdiff_t>(end - first, limits::items_max);
    if (first != last) {
      sends = true;
      verb(Verb::acquire, begin->to, step, static_cast<int>(last - first));
      for (auto item = first; item != last; ++item) copy_item(*item, static_cast<int>(item - first));
      verb(Verb::commit, begin->to, step);
    }
    begin = end;
  }
  return sends;
}

/// `jobs`: of one turn.
void Lowering::receive(int step, std::span<const int> jobs) {
  const auto for_each_far = [this](const Job& job, auto visit) {
    for (const Operand& operand : job.sources)
      if (operand.rank != rank_) visit(operand.rank, message_from_[static_cast<std::size_t>(operand.rank)]);
  };
  for (const int index : jobs) for_each_far(jobs_.job(index), [](Rank, Received& message) { ++message.items; });
  for (const int index : jobs) {
    const Job& job = jobs_.job(index);
    for_each_far(job, [&](Rank peer, Received& message) {
      if (message.read++ == 0) verb(Verb::peek, peer, step, message.items);
    });
    make(job);
    for_each_far(job, [&](Rank peer, Received& message) {
      if (++message.done < message.items) return;
      verb(Verb::release, peer, step);
      message = {};
    });
  }
}

void Lowering::lines() {
  std::vector<bool> open(static_cast<std::size_t>(schedule_.ranks()));
  for (const int index : jobs_.of(rank_)) {
    const Job& job = jobs_.job(index);
    for (const Operand& operand : job.sources) {
      if (operand.rank == rank_ || open[static_cast<std::size_t>(operand.rank)]) continue;
      verb(Verb::wait_descriptor, operand.rank, job.step);
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
  sources_.clear();
  for (const Operand& operand : job.sources) {
    sources_.push_back(source(job, operand));
    if (job.reduce) sources_.back().halvings = halvings_of(operand.inputs);
  }
  Place destination = own(job.dst, false);
  if (job.to != rank_) {
    destination.where = Where::peer_output;
    destination.peer = static_cast<std::uint16_t>(job.to);
  }

  // A long reduction is a chain through the last scratch group: in place, the destination may be one of the later
  // sources.
  const int part = job.dst.block % schedule_.parts();
  const Place so_far = own({Buffer::scratch, (schedule_.scratch_groups() - 1) * schedule_.parts() + part}, false);
  std::span<const Place> left = sources_;
  if (left.size() <= limits::sources_max) return pass(job, left, destination, job.inputs);
  std::vector<Place> now;
  int inputs = 0;
  for (std::size_t done = 0; !left.empty();) {
    const std::size_t taken = std::min<std::size_t>(left.size(), limits::sources_max - now.size());
    now.insert(now.end(), left.begin(), left.begin() + static_cast<std::ptrdiff_t>(taken));
    left = left.subspan(taken);
    for (const Operand& operand : job.sources.subspan(done, taken)) inputs += operand.inputs;
    done += taken;
    assert(left.empty() || schedule_.chained());
    pass(job, now, left.empty() ? destination : so_far, inputs);
    now = {so_far};
    now.back().halvings = halvings_of(inputs);
  }
}

/// `inputs`: of how many ranks the result is the sum, if it is one and the collective averages.
void Lowering::pass(const Job& job, std::span<const Place> sources, Place destination, int inputs) {
  const bool last = job.reduce && inputs == schedule_.ranks();
  plan_.actions.push_back({.verb = job.reduce ? Verb::reduce : Verb::copy,
                           .last = static_cast<std::uint8_t>(last),
                           .sources = static_cast<std::uint16_t>(sources.size()),
                           .destinations = 1,
                           .first = static_cast<std::uint32_t>(plan_.places.size()),
                           .part = static_cast<std::uint32_t>(job.dst.block % schedule_.parts()),
                           .step = static_cast<std::uint32_t>(job.step),
                           .halvings = static_cast<std::uint32_t>(job.reduce ? halvings_of(inputs) : 0)});
  plan_.places.insert(plan_.places.end(), sources.begin(), sources.end());
  plan_.places.push_back(destination);
}

void Lowering::copy_item(const Sent& item, int index) {
  plan_.actions.push_back({.verb = Verb::copy,
                           .sources = 1,
                           .destinations = 1,
                           .first = static_cast<std::uint32_t>(plan_.places.size()),
                           .part = static_cast<std::uint32_t>(item.ref.block % schedule_.parts()),
                           .step = static_cast<std::uint32_t>(item.step)});
  plan_.places.push_back(own(item.ref, true));
  plan_.places.push_back(
      {.where = Where::slot, .peer = static_cast<std::uint16_t>(item.to), .block = static_cast<std::uint32_t>(index)});
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
  switch (plan_.access) {
    case Access::slots:
      place.where = Where::slot;
      place.block = static_cast<std::uint32_t>(operand.item % limits::items_max);
      break;
    case Access::in_line: place.where = Where::peer_payload; break;
    case Access::mapped:
    case Access::cma:
      assert(job.maker == rank_ && operand.ref.buffer != Buffer::scratch);
      place.where = operand.ref.buffer == Buffer::input ? Where::peer_input : Where::peer_output;
      place.contribution = place.where == Where::peer_input && reduces(plan_.collective) ? 1 : 0;
      break;
  }
  return place;
}

Place Lowering::own(Ref ref, bool read) const {
  static_assert(static_cast<int>(Buffer::scratch) == static_cast<int>(Where::scratch));
  const bool contribution = read && ref.buffer == Buffer::input && reduces(plan_.collective);
  return {.where = static_cast<Where>(ref.buffer),
          .contribution = contribution ? std::uint8_t{1} : std::uint8_t{0},
          .block = static_cast<std::uint32_t>(ref.block)};
}

bool by_flags(Access access) {
  return access == Access::mapped || access == Access::cma;
}

std::vector<Plan> lower(const Schedule& schedule, std::span<const Rank> ranks, Access access) {
  assert(schedule.only() == Shape::everybody || (ranks.size() == 1 && ranks[0] == schedule.only()));
  const bool alone = ranks.size() == 1 && !by_flags(access);
  const Jobs jobs(schedule, access, alone ? ranks[0] : Jobs::everybody);
  assert(jobs.possible());
  std::vector<Flags> of_ranks(ranks.size());
  if (by_flags(access)) of_ranks = flags(schedule, jobs, ranks);
  const bool is_direct = schedule.only() == Shape::everybody && direct(schedule);
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    plans.push_back(Lowering(schedule, jobs, ranks[i], access).plan(of_ranks[i]));
    plans.back().direct = is_direct;
  }
  return plans;
}

}  // namespace

bool lowers_to(const Schedule& schedule, Access access) {
  const Jobs jobs(schedule, access);
  return jobs.possible() && !(by_flags(access) && races(schedule, jobs));
}

Plan lower(const Schedule& schedule, Rank rank, Access access) {
  return std::move(lower(schedule, {&rank, 1}, access)[0]);
}

std::vector<Plan> lower_all(const Schedule& schedule, Access access) {
  std::vector<Rank> ranks(static_cast<std::size_t>(schedule.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return lower(schedule, ranks, access);
}

}  // namespace tutti
