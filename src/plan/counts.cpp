#include "plan/counts.h"

#include <algorithm>
#include <vector>

namespace tutti {

bool direct(const Schedule& schedule) {
  if (schedule.parts() != 1) return false;
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  std::vector<bool> met(ranks * ranks);
  for (const Transfer& t : schedule.transfers()) {
    if (t.src.buffer == Buffer::scratch || t.dst.buffer != Buffer::output) return false;
    if (t.from == t.to) continue;
    if (t.src.buffer != Buffer::input) return false;
    auto pair = met[static_cast<std::size_t>(t.from) * ranks + static_cast<std::size_t>(t.to)];
    if (pair) return false;
    pair = true;
  }
  return true;
}

bool keeps_groups(const Schedule& schedule) {
  if (schedule.collective() != Collective::all_gather || schedule.parts() != 1) return false;
  return std::ranges::all_of(schedule.transfers(), [](const Transfer& t) {
    const int held = t.src.buffer == Buffer::input ? t.from : t.src.block;
    return t.src.buffer != Buffer::scratch && t.dst.buffer == Buffer::output && t.dst.block == held;
  });
}

}  // namespace tutti
