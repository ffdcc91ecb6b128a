#include "plan/counts.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tutti {

bool direct(const Schedule& schedule) {
  if (schedule.parts() != 1) return false;
  std::vector<std::pair<Rank, Rank>> pairs;
  for (const Transfer& t : schedule.transfers()) {
    if (t.src.buffer == Buffer::scratch || t.dst.buffer != Buffer::output) return false;
    if (t.from == t.to) continue;
    if (t.src.buffer != Buffer::input) return false;
    pairs.emplace_back(t.from, t.to);
  }
  std::ranges::sort(pairs);
  return std::ranges::adjacent_find(pairs) == pairs.end();
}

bool keeps_groups(const Schedule& schedule) {
  if (schedule.collective() != Collective::all_gather || schedule.parts() != 1) return false;
  return std::ranges::all_of(schedule.transfers(), [](const Transfer& t) {
    const int held = t.src.buffer == Buffer::input ? t.from : t.src.block;
    return t.src.buffer != Buffer::scratch && t.dst.buffer == Buffer::output && t.dst.block == held;
  });
}

}  // namespace tutti
