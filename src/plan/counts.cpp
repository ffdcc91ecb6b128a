#include "plan/counts.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tutti {

bool direct(const Schedule& schedule) {
  if (schedule.parts() != 1) return false;
  std::set<std::pair<Rank, Rank>> pairs;
  return std::ranges::all_of(schedule.transfers(), [&pairs](const Transfer& t) {
    if (t.src.buffer == Buffer::scratch || t.dst.buffer != Buffer::output) return false;
    return t.from == t.to || (t.src.buffer == Buffer::input && pairs.emplace(t.from, t.to).second);
  });
}

bool keeps_groups(const Schedule& schedule) {
  if (schedule.collective() != Collective::all_gather || schedule.parts() != 1) return false;
  return std::ranges::all_of(schedule.transfers(), [](const Transfer& t) {
    const int held = t.src.buffer == Buffer::input ? t.from : t.src.block;
    return t.src.buffer != Buffer::scratch && t.dst.buffer == Buffer::output && t.dst.block == held;
  });
}

}  // namespace tutti
