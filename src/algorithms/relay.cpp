// All-to-all in which a block's path depends only on the distance it has to travel.
#include "algorithms/relay.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>

#include "algorithms/visits.h"

namespace tutti {
namespace {

/// One leg of all blocks that travel `distance` in total.
struct Hop {
  int distance;
  int before;  // distance before this leg
  int after;   // distance after it
  int scratch;
};

std::vector<std::vector<Hop>> steps_of(int n, const LegsOf& legs_of) {
  std::vector<std::vector<Hop>> steps;
  std::vector<Leg> legs;
  int scratch = 0;
  for (int distance = 1; distance < n; ++distance) {
    int gone = 0;
    legs.clear();
    legs_of(distance, legs);
    for (const Leg& leg : legs) {
      if (static_cast<int>(steps.size()) <= leg.step) steps.resize(static_cast<std::size_t>(leg.step) + 1);
      steps[static_cast<std::size_t>(leg.step)].push_back(
          {.distance = distance, .before = gone, .after = gone + leg.distance, .scratch = scratch});
      gone += leg.distance;
    }
    assert(gone == distance);
    if (legs.size() > 1) ++scratch;
  }
  return steps;
}

}  // namespace

Schedule relay(const Shape& shape, const LegsOf& legs_of) {
  const int n = shape.ranks;
  Schedule schedule(shape, /*parts=*/1);
  for_each_rank(shape, [&](Rank rank) { schedule.copy(rank, {Buffer::input, rank}, rank, {Buffer::output, rank}); });
  for (const std::vector<Hop>& hops : steps_of(n, legs_of)) {
    for (const Hop& hop : hops)
      for_each_sender_ahead(shape, hop.after - hop.before, [&](Rank sender) {
        const Rank source = (sender - hop.before + n) % n;
        const Ref from =
            hop.before == 0 ? Ref{Buffer::input, (source + hop.distance) % n} : Ref{Buffer::scratch, hop.scratch};
        const Ref to = hop.after == hop.distance ? Ref{Buffer::output, source} : Ref{Buffer::scratch, hop.scratch};
        schedule.copy(sender, from, (source + hop.after) % n, to);
      });
    schedule.next_step();
  }
  return schedule;
}

int relay_items(int ranks, const LegsOf& legs_of) {
  int most = 0;
  for (const std::vector<Hop>& hops : steps_of(ranks, legs_of)) {
    std::map<int, int> blocks;  // by distance
    for (const Hop& hop : hops) most = std::max(most, ++blocks[hop.after - hop.before]);
  }
  return most;
}

}  // namespace tutti
