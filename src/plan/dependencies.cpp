// Finds the flags that order the ranks: follows every block of mapped memory through the steps.
#include "plan/dependencies.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

/// The job at `position` of `rank`.
struct JobPosition {
  Rank rank = -1;
  int position = 0;
};

struct MemoryAccess {
  std::size_t cell = 0;
  JobPosition by;
  bool write = false;
  int before = -1;  // index of the access to the same cell that was found before, in this step
};

/// Accesses to a block since it was last written.
struct History {
  JobPosition writer;
  std::vector<JobPosition> readers;
  int access = -1;  // the last access in this step
};

/// A flag from or to `peer`: the position to wait before, the position to raise after.
struct Edge {
  Rank peer = 0;
  int wait = 0;
  int raise = 0;
};

class Dependencies {
 public:
  /// Keeps only the flags of `ranks`.
  Dependencies(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks);
  bool raced() const { return raced_; }
  Flags flags(Rank rank);

 private:
  void walk(const Cells& cells);
  void mark(std::span<const Rank> ranks, const Cells& cells);
  void collect(const Job& job, int position, const Cells& cells);
  void note(const MemoryAccess& access);
  void meet(std::span<const MemoryAccess> accesses, History& history);
  void add(JobPosition first, JobPosition then);
  void leave(JobPosition last, Rank owner) { add(last, {owner, static_cast<int>(jobs_.of(owner).size())}); }

  const Jobs& jobs_;
  int ranks_;
  bool raced_ = false;
  std::vector<char> kept_;                  // by rank
  std::vector<char> met_;                   // by cell: a kept rank accesses it; empty: all cells are followed
  std::vector<std::vector<Edge>> raised_;   // by rank: flags for peers that wait for it
  std::vector<std::vector<Edge>> awaited_;  // by rank: flags of peers that it waits for
  std::vector<History> histories_;          // by cell
  std::vector<MemoryAccess> accesses_;      // of this step
};

Dependencies::Dependencies(const Schedule& schedule, const Jobs& jobs, std::span<const Rank> ranks)
    : jobs_(jobs),
      ranks_(schedule.ranks()),
      kept_(static_cast<std::size_t>(ranks_)),
      raised_(kept_.size()),
      awaited_(kept_.size()) {
  for (const Rank rank : ranks) kept_[static_cast<std::size_t>(rank)] = 1;
  for (const Cells* const cells : {&jobs.apart(), &jobs.in_place()}) {
    if (ranks.size() == 1) mark(ranks, *cells);
    walk(*cells);
  }
}

/// A flag joins ranks that access one block. If only some ranks' flags are wanted, blocks that these ranks do not
/// access need not be followed.
void Dependencies::mark(std::span<const Rank> ranks, const Cells& cells) {
  met_.assign(cells.size(), 0);
  for (const Rank rank : ranks)
    for (const int index : jobs_.of(rank)) {
      const Job& job = jobs_.job(index);
      met_[cells.at(job.to, job.dst)] = 1;
      for (const Operand& source : job.sources) met_[cells.at(source.rank, source.ref)] = 1;
    }
}

void Dependencies::walk(const Cells& cells) {
  histories_.assign(cells.size(), {});
  std::vector<int> done(static_cast<std::size_t>(ranks_));  // number of jobs of each rank in earlier steps
  std::vector<MemoryAccess> meeting;
  for (int step = 0, left = 1; left > 0; ++step) {
    left = 0;
    accesses_.clear();
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const std::vector<int>& own = jobs_.of(rank);
      int& position = done[static_cast<std::size_t>(rank)];
      for (; position < static_cast<int>(own.size()); ++position) {
        const Job& job = jobs_.job(own[static_cast<std::size_t>(position)]);
        if (job.step > step) break;
        collect(job, position, cells);
      }
      left += static_cast<int>(own.size()) - position;
    }
    for (const MemoryAccess& access : accesses_) {
      History& history = histories_[access.cell];
      if (history.access < 0) continue;  // handled together with another access
      meeting.clear();
      for (int i = std::exchange(history.access, -1); i >= 0; i = meeting.back().before)
        meeting.push_back(accesses_[static_cast<std::size_t>(i)]);
      std::ranges::reverse(meeting);
      meet(meeting, history);
    }
  }
}

void Dependencies::collect(const Job& job, int position, const Cells& cells) {
  const JobPosition by{job.maker, position};
  for (const Operand& source : job.sources) {
    if (!jobs_.touches(job, source)) continue;
    note({.cell = cells.at(source.rank, source.ref), .by = by, .write = false});
    leave(by, source.rank);
  }
  if (jobs_.idle(job, cells)) return;
  note({.cell = cells.at(job.to, job.dst), .by = by, .write = true});
  leave(by, job.to);
}

void Dependencies::note(const MemoryAccess& access) {
  if (!met_.empty() && met_[access.cell] == 0) return;
  const int before = std::exchange(histories_[access.cell].access, static_cast<int>(accesses_.size()));
  accesses_.push_back(access);
  accesses_.back().before = before;
}

/// Handles all accesses of one step to one block.
void Dependencies::meet(std::span<const MemoryAccess> accesses, History& history) {
  const bool written = std::ranges::any_of(accesses, &MemoryAccess::write);
  for (const MemoryAccess& access : accesses) {
    if (written && access.by.rank != accesses[0].by.rank) raced_ = true;
    add(history.writer, access.by);
    if (written)
      for (const JobPosition& reader : history.readers) add(reader, access.by);
  }
  if (written) {
    history.writer = accesses[0].by;
    for (const MemoryAccess& access : accesses)
      history.writer.position = std::max(history.writer.position, access.by.position);
    history.readers.clear();
  } else {
    for (const MemoryAccess& access : accesses) history.readers.push_back(access.by);
  }
}

void Dependencies::add(JobPosition first, JobPosition then) {
  if (first.rank < 0 || first.rank == then.rank) return;
  const auto from = static_cast<std::size_t>(first.rank), to = static_cast<std::size_t>(then.rank);
  const auto keep = [&](std::vector<Edge>& edges, Rank peer) {
    if (!edges.empty() && edges.back().peer == peer && edges.back().wait == then.position)
      edges.back().raise = std::max(edges.back().raise, first.position);
    else
      edges.push_back({.peer = peer, .wait = then.position, .raise = first.position});
  };
  if (kept_[from]) keep(raised_[from], then.rank);
  if (kept_[to]) keep(awaited_[to], first.rank);
}

/// Sorts by peer and position, and drops flags that an earlier wait has already covered.
void keep_needed(std::vector<Edge>& edges) {
  std::ranges::sort(edges, {}, [](const Edge& edge) { return std::tuple(edge.peer, edge.wait, -edge.raise); });
  Rank peer = -1;
  int seen = -1;
  std::erase_if(edges, [&](const Edge& edge) {
    if (edge.peer != peer) seen = -1;
    peer = edge.peer;
    if (edge.raise <= seen) return true;
    seen = edge.raise;
    return false;
  });
}

Flags Dependencies::flags(Rank rank) {
  const auto needed = [this, rank](std::vector<Edge>& edges, int Edge::*position) {
    keep_needed(edges);
    std::vector<FlagAt> flags;
    for (const Edge& edge : edges) flags.push_back({edge.*position, edge.peer});
    // Nearest peers first, so that not all ranks wait for the same flag.
    std::ranges::sort(flags, {}, [this, rank](const FlagAt& flag) {
      return std::pair(flag.position, (flag.peer - rank + ranks_) % ranks_);
    });
    return flags;
  };
  const auto own = static_cast<std::size_t>(rank);
  return {.signals = needed(raised_[own], &Edge::raise), .waits = needed(awaited_[own], &Edge::wait)};
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
