// Which flags order the ranks: follows every block of mapped memory through the steps.
#include "plan/dependencies.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <span>
#include <utility>

namespace tutti {
namespace {

/// The job at `position` of `rank`.
struct Spot {
  Rank rank = -1;
  int position = 0;
};

struct Access {
  std::size_t cell = 0;
  Spot by;
  bool write = false;
};

/// Since a block was last written.
struct History {
  Spot writer;
  std::vector<Spot> readers;
};

class Dependencies {
 public:
  /// Keeps what concerns `ranks`.
  Dependencies(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks);
  bool raced() const { return raced_; }
  Flags flags(Rank rank);

 private:
  using Edges = std::vector<std::pair<int, int>>;  // position before which to wait, position after which to raise

  void walk(const Cells& cells);
  void collect(const Job& job, int position, const Cells& cells, std::vector<Access>& accesses);
  void meet(std::span<const Access> accesses, History& history);
  void add(Spot first, Spot then);
  void leave(Spot last, Rank owner) { add(last, {owner, static_cast<int>(jobs_.of(owner).size())}); }

  const Jobs& jobs_;
  int ranks_;
  bool raced_ = false;
  std::vector<char> kept_;                      // by rank
  std::vector<std::map<Rank, Edges>> raised_;   // by rank and the peer that waits for it
  std::vector<std::map<Rank, Edges>> awaited_;  // by rank and the peer it waits for
};

Dependencies::Dependencies(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks)
    : jobs_(jobs),
      ranks_(schedule.ranks()),
      kept_(static_cast<std::size_t>(ranks_)),
      raised_(kept_.size()),
      awaited_(kept_.size()) {
  for (const Rank rank : ranks) kept_[static_cast<std::size_t>(rank)] = 1;
  walk(jobs.apart());
  walk(jobs.in_place());
}

void Dependencies::walk(const Cells& cells) {
  std::vector<History> histories(cells.size());
  std::vector<int> done(static_cast<std::size_t>(ranks_));  // jobs of each rank in earlier steps
  std::vector<Access> accesses;
  for (int step = 0, left = 1; left > 0; ++step) {
    left = 0;
    accesses.clear();
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const std::vector<int>& own = jobs_.of(rank);
      int& position = done[static_cast<std::size_t>(rank)];
      for (; position < static_cast<int>(own.size()); ++position) {
        const Job& job = jobs_.job(own[static_cast<std::size_t>(position)]);
        if (job.step > step) break;
        collect(job, position, cells, accesses);
      }
      left += static_cast<int>(own.size()) - position;
    }
    std::ranges::stable_sort(accesses, {}, &Access::cell);
    for (auto begin = accesses.begin(); begin != accesses.end();) {
      const auto end = std::ranges::find_if(begin, accesses.end(), [&](auto& a) { return a.cell != begin->cell; });
      meet({begin, end}, histories[begin->cell]);
      begin = end;
    }
  }
}

void Dependencies::collect(const Job& job, int position, const Cells& cells, std::vector<Access>& accesses) {
  const Spot by{job.maker, position};
  for (const Operand& source : job.sources) {
    if (!jobs_.touches(job, source)) continue;
    accesses.push_back({.cell = cells.at(source.rank, source.ref), .by = by, .write = false});
    leave(by, source.rank);
  }
  if (jobs_.idle(job, cells)) return;
  accesses.push_back({.cell = cells.at(job.to, job.dst), .by = by, .write = true});
  leave(by, job.to);
}

/// All accesses of one step to one block.
void Dependencies::meet(std::span<const Access> accesses, History& history) {
  const bool written = std::ranges::any_of(accesses, &Access::write);
  for (const Access& access : accesses) {
    if (written && access.by.rank != accesses[0].by.rank) raced_ = true;
    add(history.writer, access.by);
    if (written)
      for (const Spot& reader : history.readers) add(reader, access.by);
  }
  if (written) {
    history.writer = accesses[0].by;
    for (const Access& access : accesses)
      history.writer.position = std::max(history.writer.position, access.by.position);
    history.readers.clear();
  } else {
    for (const Access& access : accesses) history.readers.push_back(access.by);
  }
}

void Dependencies::add(Spot first, Spot then) {
  if (first.rank < 0 || first.rank == then.rank) return;
  const auto from = static_cast<std::size_t>(first.rank), to = static_cast<std::size_t>(then.rank);
  if (kept_[from]) raised_[from][then.rank].push_back({then.position, first.position});
  if (kept_[to]) awaited_[to][first.rank].push_back({then.position, first.position});
}

/// Leaves out what an earlier wait has seen already.
void keep_needed(std::vector<std::pair<int, int>>& edges) {
  std::ranges::sort(
      edges, [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
  int seen = -1;
  std::erase_if(edges, [&](const auto& edge) {
    if (edge.second <= seen) return true;
    seen = edge.second;
    return false;
  });
}

Flags Dependencies::flags(Rank rank) {
  Flags result;
  for (auto& [peer, edges] : raised_[static_cast<std::size_t>(rank)]) {
    keep_needed(edges);
    for (const auto& [before, after] : edges) result.signals.push_back({after, peer});
  }
  for (auto& [peer, edges] : awaited_[static_cast<std::size_t>(rank)]) {
    keep_needed(edges);
    for (const auto& [before, after] : edges) result.waits.push_back({before, peer});
  }
  // Nearest peers first: not all ranks at one flag.
  const auto by_position = [this, rank](const FlagAt& a, const FlagAt& b) {
    const auto distance = [this, rank](Rank peer) { return (peer - rank + ranks_) % ranks_; };
    return a.position != b.position ? a.position < b.position : distance(a.peer) < distance(b.peer);
  };
  std::ranges::sort(result.signals, by_position);
  std::ranges::sort(result.waits, by_position);
  return result;
}

}  // namespace

bool races(const Schedule& schedule, const Jobs& jobs) {
  return Dependencies(schedule, jobs, {}).raced();
}

std::vector<Flags> flags(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks) {
  Dependencies dependencies(schedule, jobs, ranks);
  assert(!dependencies.raced());
  std::vector<Flags> all;
  for (const Rank rank : ranks) all.push_back(dependencies.flags(rank));
  return all;
}

}  // namespace tutti
