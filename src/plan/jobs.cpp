// Turns a schedule into jobs: collects transfers into jobs, chooses the maker of each, and orders a rank's jobs within
// a step.
#include "plan/jobs.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

namespace tutti {
namespace {

constexpr std::uint32_t no_job = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Jobs::Jobs(const Schedule& schedule, Access access, Rank only)
    : schedule_(schedule),
      access_(access),
      only_(only),
      apart_(schedule, false),
      in_place_(schedule, true),
      contributions_(schedule, apart_),
      of_(static_cast<std::size_t>(schedule.ranks())),
      sent_(of_.size()),
      items_(of_.size() * (schedule.only() == Shape::everybody ? of_.size() : 2)),
      writer_(apart_.size(), -1) {
  assert(only == everybody || access == Access::slots || access == Access::in_line);
  assert(schedule.only() == Shape::everybody || schedule.only() == only);
  collect();
  for (const Job& job : jobs_) possible_ = possible_ && accesses(job);
  if (possible_) order();
}

void Jobs::collect() {
  const auto is_wanted = [this](const Transfer& t) { return wanted(t.to); };
  operands_.resize(static_cast<std::size_t>(std::ranges::count_if(schedule_.transfers(), is_wanted)));
  std::vector<std::uint32_t> job_of(apart_.size(), no_job);  // by destination, of this step
  for_each_step(schedule_, [&](std::span<const Transfer> transfers) { collect_step(transfers, job_of); });
}

/// Transfers into one block become one job with adjacent operands.
void Jobs::collect_step(std::span<const Transfer> transfers, std::vector<std::uint32_t>& job_of) {
  const std::size_t first = jobs_.size();
  for (const Transfer& t : transfers) {
    if (!wanted(t.to)) continue;
    std::uint32_t& job = job_of[apart_.at(t.to, t.dst)];
    if (job == no_job) {
      job = static_cast<std::uint32_t>(jobs_.size());
      jobs_.push_back({.step = t.step, .to = t.to, .dst = t.dst, .maker = t.to});
    }
    std::span<const Operand>& sources = jobs_[job].sources;
    sources = {operands_.data(), sources.size() + 1};  // how many; where they begin follows
  }
  Operand* end = operands_.data();
  if (first > 0) end += jobs_[first - 1].sources.data() + jobs_[first - 1].sources.size() - end;
  next_.clear();
  for (Job& job : std::span(jobs_).subspan(first)) {
    job.sources = {end, job.sources.size()};
    job.reduce = job.sources.size() > 1;
    next_.push_back(end);
    end += job.sources.size();
  }
  for (const Transfer& t : transfers) {
    const int item = next_item(t);
    if (!wanted(t.to)) continue;
    *next_[job_of[apart_.at(t.to, t.dst)] - first]++ = {
        .rank = t.from, .ref = t.src, .order = t.order, .item = item, .inputs = contributions_.moved_by(t)};
  }
  contributions_.step(transfers);
  for (std::size_t i = first; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    job.inputs = contributions_.at(job.to, job.dst);
    const std::span<Operand> sources(next_[i - first] - job.sources.size(), job.sources.size());
    if (!std::ranges::is_sorted(sources, {}, &Operand::order)) std::ranges::stable_sort(sources, {}, &Operand::order);
  }
  if (access_ == Access::slots && items_max_ > limits::items_max) take_turns(first, transfers);
  if (access_ == Access::mapped) choose_makers(std::span(jobs_).subspan(first));
  for (const Transfer& t : transfers) {
    if (wanted(t.to)) job_of[apart_.at(t.to, t.dst)] = no_job;
    items_between(t.from, t.to) = 0;
  }
}

/// A job of a turn reads all its messages in that turn, and overwrites nothing that is sent in a later one.
void Jobs::take_turns(std::size_t first_job, std::span<const Transfer> transfers) {
  for (Job& job : std::span(jobs_).subspan(first_job)) {
    bool has_turn = false;
    for (const Operand& source : job.sources) {
      if (source.rank == job.to) continue;
      const int turn = turn_of(source.item);
      if (has_turn && turn != job.turn) possible_ = false;
      job.turn = turn;
      has_turn = true;
    }
  }
  for (const Transfer& t : transfers) items_between(t.from, t.to) = 0;
  std::unordered_map<std::size_t, int> last[2];  // by block: the last turn in which it is sent
  const auto cells = {&apart_, &in_place_};
  for (const Transfer& t : transfers) {
    if (t.from == t.to) continue;
    const int item = items_between(t.from, t.to)++;
    for (auto* of = last; wanted(t.from) && turn_of(item) > 0 && of != std::end(last); ++of) {
      int& turn = (*of)[cells.begin()[of - last]->at(t.from, t.src)];
      turn = std::max(turn, turn_of(item));
    }
  }
  for (const Job& job : std::span(jobs_).subspan(first_job))
    for (auto* of = last; of != std::end(last); ++of) {
      const auto sent = of->find(cells.begin()[of - last]->at(job.to, job.dst));
      if (sent != of->end() && sent->second > job.turn && !idle(job, *cells.begin()[of - last])) possible_ = false;
    }
}

/// The index of `t`'s block in its message.
int Jobs::next_item(const Transfer& t) {
  if (t.from == t.to) return 0;
  if (wanted(t.from)) sent_[static_cast<std::size_t>(t.from)].push_back({.step = t.step, .to = t.to, .ref = t.src});
  const int item = items_between(t.from, t.to)++;
  items_max_ = std::max(items_max_, item + 1);
  return item;
}

int& Jobs::items_between(Rank from, Rank to) {
  const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  if (schedule_.only() == Shape::everybody) return items_[f * of_.size() + t];
  return from == only_ ? items_[t] : items_[of_.size() + f];
}

/// Mapped memory: the side with fewer transfers in the step copies, so that all ranks work. If both have as many, the
/// sender copies a block that goes to several ranks or was made by a pass, which can then store it there directly.
void Jobs::choose_makers(std::span<Job> step) {
  std::vector<int> sent(of_.size()), received(of_.size());
  std::vector<std::size_t> copied;  // cells, each listed as often as it is sent
  for (const Job& job : step)
    for (const Operand& source : job.sources) {
      if (source.rank == job.to) continue;
      ++sent[static_cast<std::size_t>(source.rank)];
      ++received[static_cast<std::size_t>(job.to)];
      copied.push_back(apart_.at(source.rank, source.ref));
    }
  std::ranges::sort(copied);
  for (Job& job : step) {
    const Operand& source = job.sources[0];
    if (job.reduce || source.rank == job.to) continue;
    const auto copies = std::ranges::equal_range(copied, apart_.at(source.rank, source.ref)).size();
    const bool made = source.ref.buffer != Buffer::input || copies > 1;
    const int difference = sent[static_cast<std::size_t>(source.rank)] - received[static_cast<std::size_t>(job.to)];
    if (job.dst.buffer != Buffer::scratch &&
        (difference < 0 || (difference == 0 && made) || source.ref.buffer == Buffer::scratch))
      job.maker = source.rank;
  }
}

/// Call descriptors carry inputs only; no rank sees another rank's scratch.
bool Jobs::accesses(const Job& job) const {
  if (access_ == Access::slots) return true;
  for (const Operand& source : job.sources) {
    if (access_ == Access::in_line && (source.ref.buffer != Buffer::input || job.step > 0)) return false;
    if (source.rank != job.maker && source.ref.buffer == Buffer::scratch) return false;
  }
  return job.maker == job.to || job.dst.buffer != Buffer::scratch;
}

bool Jobs::touches(const Job& job, const Operand& source) const {
  return source.rank == job.maker || access_ == Access::mapped || access_ == Access::cma;
}

bool Jobs::idle(const Job& job, const Cells& cells) const {
  return !job.reduce && !reduces(schedule_.collective()) && job.sources[0].rank == job.to &&
         cells.at(job.sources[0].rank, job.sources[0].ref) == cells.at(job.to, job.dst);
}

void Jobs::order() {
  for (int i = 0; i < static_cast<int>(jobs_.size()); ++i) of_[static_cast<std::size_t>(job(i).maker)].push_back(i);
  for (std::vector<int>& all : of_) {
    std::vector<int> sorted, step;
    for (std::size_t i = 0; i < all.size(); ++i) {
      step.push_back(all[i]);
      if (i + 1 < all.size() && job(all[i + 1]).step == job(all[i]).step) continue;
      if (!order_step(step)) possible_ = false;
      sorted.insert(sorted.end(), step.begin(), step.end());
      step.clear();
    }
    all = std::move(sorted);
  }
}

/// A job that reads a block comes before the job that writes it. Otherwise by turn; in a turn own data first, then from
/// near to far, so that not all ranks access the same peer. False if there is a cycle.
bool Jobs::order_step(std::vector<int>& jobs) {
  if (jobs.size() == 1) return true;
  std::ranges::stable_sort(jobs, {}, [this](int index) { return std::pair(job(index).turn, distance(job(index))); });
  const std::vector<Edge> edges = constraints(jobs);
  if (edges.empty()) return true;

  std::vector<int> blockers(jobs.size());
  for (const Edge& edge : edges) ++blockers[static_cast<std::size_t>(edge.later)];
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < static_cast<int>(jobs.size()); ++i)
    if (blockers[static_cast<std::size_t>(i)] == 0) ready.push(i);
  std::vector<int> ordered;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    ordered.push_back(jobs[static_cast<std::size_t>(next)]);
    for (const Edge& edge : std::ranges::equal_range(edges, next, {}, &Edge::earlier))
      if (--blockers[static_cast<std::size_t>(edge.later)] == 0) ready.push(edge.later);
  }
  const bool all = ordered.size() == jobs.size() &&
                   std::ranges::is_sorted(ordered, {}, [this](int index) { return job(index).turn; });
  if (all) jobs = std::move(ordered);
  return all;
}

/// Which of a rank's jobs of one step must come before which others, by position.
std::vector<Jobs::Edge> Jobs::constraints(std::span<const int> jobs) {
  std::vector<Edge> edges;
  const int n = static_cast<int>(jobs.size());
  const auto job_at = [&](int i) -> const Job& { return job(jobs[static_cast<std::size_t>(i)]); };
  for (const Cells* cells : {&apart_, &in_place_}) {
    for (int i = 0; i < n; ++i)
      if (!idle(job_at(i), *cells)) writer_[cells->at(job_at(i).to, job_at(i).dst)] = i;
    for (int i = 0; i < n; ++i)
      for (const Operand& source : job_at(i).sources) {
        if (!touches(job_at(i), source)) continue;
        const int writer = writer_[cells->at(source.rank, source.ref)];
        if (writer >= 0 && writer != i) edges.push_back({.earlier = i, .later = writer});
      }
    for (int i = 0; i < n; ++i) writer_[cells->at(job_at(i).to, job_at(i).dst)] = -1;
  }
  std::ranges::sort(edges, {}, &Edge::earlier);
  return edges;
}

/// The distance of the ranks whose memory the job accesses: 0 if it is only its own.
int Jobs::distance(const Job& job) const {
  const int ranks = schedule_.ranks();
  int farthest = (job.to - job.maker + ranks) % ranks;
  for (const Operand& source : job.sources) farthest = std::max(farthest, (job.maker - source.rank + ranks) % ranks);
  return farthest;
}

}  // namespace tutti
