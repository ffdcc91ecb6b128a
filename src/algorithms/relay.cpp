// All-to-all in which a block's path depends only on the distance it has to travel.
#include "algorithms/relay.h"

#include <cassert>
#include <cstddef>

namespace tutti {
namespace {

/// One leg of all blocks that travel `distance` in total.
struct Hop {
  int distance;
  int before;  // distance before this leg
  int after;   // distance after it
  int scratch;
};

}  // namespace

Schedule relay(const Shape& shape, const std::vector<std::vector<Leg>>& legs) {
  const int n = shape.ranks;
  std::vector<std::vector<Hop>> steps;
  int scratch = 0;
  for (int distance = 1; distance < n; ++distance) {
    int gone = 0;
    for (const Leg& leg : legs[static_cast<std::size_t>(distance)]) {
      if (static_cast<int>(steps.size()) <= leg.step) steps.resize(static_cast<std::size_t>(leg.step) + 1);
      steps[static_cast<std::size_t>(leg.step)].push_back(
          {.distance = distance, .before = gone, .after = gone + leg.distance, .scratch = scratch});
      gone += leg.distance;
    }
    assert(gone == distance);
    if (legs[static_cast<std::size_t>(distance)].size() > 1) ++scratch;
  }

  Schedule schedule(shape, /*parts=*/1);
  for (Rank rank = 0; rank < n; ++rank) schedule.copy(rank, {Buffer::input, rank}, rank, {Buffer::output, rank});
  for (const std::vector<Hop>& hops : steps) {
    for (Rank source = 0; source < n; ++source)
      for (const Hop& hop : hops) {
        const Ref from =
            hop.before == 0 ? Ref{Buffer::input, (source + hop.distance) % n} : Ref{Buffer::scratch, hop.scratch};
        const Ref to = hop.after == hop.distance ? Ref{Buffer::output, source} : Ref{Buffer::scratch, hop.scratch};
        schedule.copy((source + hop.before) % n, from, (source + hop.after) % n, to);
      }
    schedule.next_step();
  }
  return schedule;
}

}  // namespace tutti
