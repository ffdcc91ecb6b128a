// A schedule as work: collects transfers into jobs, gives each a maker, and orders what a rank makes in one step.
#include "plan/jobs.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

namespace tutti {

Cells::Cells(const Schedule& schedule, bool in_place) {
  const Collective collective = schedule.collective();
  const int ranks = schedule.ranks(), parts = schedule.parts();
  const Rank root = schedule.root();
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (const int groups : {input_groups(collective, ranks, rank, root), output_groups(collective, ranks, rank, root),
                             schedule.scratch_groups()}) {
      first_.push_back(numbers_.size());
      for (int block = 0; block < groups * parts; ++block) numbers_.push_back(numbers_.size());
    }
    const std::size_t input = first_[first_.size() - 3], output = first_[first_.size() - 2];
    for (std::size_t at = input; in_place && at < output; ++at)
      if (const int same = in_place_block(collective, ranks, parts, rank, root, static_cast<int>(at - input));
          same >= 0)
        numbers_[at] = output + static_cast<std::size_t>(same);
  }
}

Jobs::Jobs(const Schedule& schedule, Reach reach)
    : schedule_(schedule),
      reach_(reach),
      apart_(schedule, false),
      in_place_(schedule, true),
      of_(static_cast<std::size_t>(schedule.ranks())),
      writer_(apart_.size(), -1) {
  collect();
  find_complete();
  if (reach == Reach::window || reach == Reach::pull) choose_makers();
  for (const Job& job : jobs_) possible_ = possible_ && reaches(job);
  if (possible_) order();
}

void Jobs::collect() {
  std::vector<const Transfer*> in_order;
  in_order.reserve(schedule_.transfers().size());
  for (const Transfer& t : schedule_.transfers()) in_order.push_back(&t);
  std::ranges::stable_sort(in_order, {}, &Transfer::step);

  std::map<std::pair<Rank, Rank>, int> items;  // of this step's messages so far
  std::map<std::size_t, std::size_t> job_of;   // by destination, of this step
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const Transfer& t = *in_order[i];
    if (i > 0 && t.step != in_order[i - 1]->step) {
      items.clear();
      job_of.clear();
    }
    const auto [at, is_new] = job_of.try_emplace(apart_.at(t.to, t.dst), jobs_.size());
    if (is_new) jobs_.push_back({.step = t.step, .to = t.to, .dst = t.dst, .maker = t.to});
    const int item = t.from == t.to ? 0 : items[{t.from, t.to}]++;
    jobs_[at->second].sources.push_back({.rank = t.from, .ref = t.src, .order = t.order, .item = item});
  }
  for (Job& job : jobs_) {
    std::ranges::stable_sort(job.sources, {}, &Operand::order);
    job.reduce = job.sources.size() > 1;
  }
}

/// Counts contributions; in a proven schedule none is counted twice.
void Jobs::find_complete() {
  if (!reduces(schedule_.collective())) return;
  std::vector<int> contributions(apart_.size());
  for (Rank rank = 0; rank < schedule_.ranks(); ++rank) {
    const int groups = input_groups(schedule_.collective(), schedule_.ranks(), rank, schedule_.root());
    for (int block = 0; block < groups * schedule_.parts(); ++block)
      contributions[apart_.at(rank, {Buffer::input, block})] = 1;
  }
  std::vector<int> landing;
  for (std::size_t begin = 0, end = 0; begin < jobs_.size(); begin = end) {
    landing.clear();
    for (; end < jobs_.size() && jobs_[end].step == jobs_[begin].step; ++end) {
      int sum = 0;
      for (const Operand& source : jobs_[end].sources) sum += contributions[apart_.at(source.rank, source.ref)];
      landing.push_back(sum);
      jobs_[end].complete = jobs_[end].reduce && sum == schedule_.ranks();
    }
    for (std::size_t i = begin; i < end; ++i) contributions[apart_.at(jobs_[i].to, jobs_[i].dst)] = landing[i - begin];
  }
}

/// Windows: the side that has fewer transfers in the step copies, so that all ranks work. With equally many the sender
/// does it where one block goes to several ranks or was made by a pass, which can then store it there at once.
void Jobs::choose_makers() {
  if (reach_ == Reach::pull) return;
  for (std::size_t begin = 0, end = 0; begin < jobs_.size(); begin = end) {
    std::map<Rank, int> sent, received;
    std::map<std::size_t, int> copies;
    for (; end < jobs_.size() && jobs_[end].step == jobs_[begin].step; ++end)
      for (const Operand& source : jobs_[end].sources) {
        if (source.rank == jobs_[end].to) continue;
        ++sent[source.rank];
        ++received[jobs_[end].to];
        ++copies[apart_.at(source.rank, source.ref)];
      }
    for (std::size_t i = begin; i < end; ++i) {
      Job& job = jobs_[i];
      const Operand& source = job.sources[0];
      if (job.reduce || source.rank == job.to) continue;
      const bool made = source.ref.buffer != Buffer::input || copies[apart_.at(source.rank, source.ref)] > 1;
      const int difference = sent[source.rank] - received[job.to];
      if (job.dst.buffer != Buffer::scratch &&
          (difference < 0 || (difference == 0 && made) || source.ref.buffer == Buffer::scratch))
        job.maker = source.rank;
    }
  }
}

/// Lines carry inputs alone; nobody sees another rank's scratch.
bool Jobs::reaches(const Job& job) const {
  if (reach_ == Reach::fifo) return true;
  for (const Operand& source : job.sources) {
    if (reach_ == Reach::line && (source.ref.buffer != Buffer::input || job.step > 0)) return false;
    if (source.rank != job.maker && source.ref.buffer == Buffer::scratch) return false;
  }
  return job.maker == job.to || job.dst.buffer != Buffer::scratch;
}

bool Jobs::touches(const Job& job, const Operand& source) const {
  return source.rank == job.maker || reach_ == Reach::window || reach_ == Reach::pull;
}

bool Jobs::idle(const Job& job, const Cells& cells) const {
  return !job.reduce && !reduces(schedule_.collective()) &&
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

/// A job that reads a block comes before the one that writes it. Otherwise own data first, then from near to far, so
/// that not all ranks turn to the same peer. False if there is a cycle.
bool Jobs::order_step(std::vector<int>& jobs) {
  std::ranges::stable_sort(jobs, {}, [this](int index) { return distance(job(index)); });
  const int n = static_cast<int>(jobs.size());
  std::vector<std::vector<int>> before(jobs.size());  // who must come later
  std::vector<int> blockers(jobs.size());
  for (const Cells* cells : {&apart_, &in_place_}) {
    const auto job_at = [&](int i) -> const Job& { return job(jobs[static_cast<std::size_t>(i)]); };
    for (int i = 0; i < n; ++i)
      if (!idle(job_at(i), *cells)) writer_[cells->at(job_at(i).to, job_at(i).dst)] = i;
    for (int i = 0; i < n; ++i)
      for (const Operand& source : job_at(i).sources) {
        if (!touches(job_at(i), source)) continue;
        const int writer = writer_[cells->at(source.rank, source.ref)];
        if (writer < 0 || writer == i) continue;
        before[static_cast<std::size_t>(i)].push_back(writer);
        ++blockers[static_cast<std::size_t>(writer)];
      }
    for (int i = 0; i < n; ++i) writer_[cells->at(job_at(i).to, job_at(i).dst)] = -1;
  }

  std::set<int> ready;
  for (int i = 0; i < n; ++i)
    if (blockers[static_cast<std::size_t>(i)] == 0) ready.insert(i);
  std::vector<int> ordered;
  while (!ready.empty()) {
    const int next = *ready.begin();
    ready.erase(ready.begin());
    ordered.push_back(jobs[static_cast<std::size_t>(next)]);
    for (const int later : before[static_cast<std::size_t>(next)])
      if (--blockers[static_cast<std::size_t>(later)] == 0) ready.insert(later);
  }
  const bool all = ordered.size() == jobs.size();
  if (all) jobs = std::move(ordered);
  return all;
}

/// How far the job reaches: 0 for own memory alone.
int Jobs::distance(const Job& job) const {
  const int ranks = schedule_.ranks();
  int farthest = (job.to - job.maker + ranks) % ranks;
  for (const Operand& source : job.sources) farthest = std::max(farthest, (job.maker - source.rank + ranks) % ranks);
  return farthest;
}

}  // namespace tutti
