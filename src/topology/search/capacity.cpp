#include "topology/search/capacity.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tutti::topology {

Capacity capacity_of(const Topology& topology) {
  const std::vector<int> gpus = topology.gpus();
  Capacity capacity{.gpus = static_cast<int>(gpus.size())};
  std::map<int, std::size_t> fabrics;  // the node of each
  for (const int gpu : gpus)
    if (topology.fabric_links(gpu) > 0) fabrics.try_emplace(topology.fabric_of(gpu), gpus.size() + fabrics.size());
  const std::size_t count = gpus.size() + fabrics.size();
  capacity.links.assign(count, std::vector<long long>(count, 0));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = 0; b < gpus.size(); ++b)
      if (a != b)
        capacity.links[a][b] =
            std::min(topology.direct_links(gpus[a], gpus[b]), topology.direct_links(gpus[b], gpus[a]));
    if (const auto fabric = fabrics.find(topology.fabric_of(gpus[a])); fabric != fabrics.end())
      capacity.links[a][fabric->second] = capacity.links[fabric->second][a] = topology.fabric_links(gpus[a]);
  }
  return capacity;
}

long long max_flow(std::vector<std::vector<long long>> capacity, int from, int to, long long enough,
                   std::vector<bool>* reached) {
  const std::size_t count = capacity.size();
  const auto start = static_cast<std::size_t>(from), goal = static_cast<std::size_t>(to);
  long long flow = 0;
  std::vector<std::size_t> before(count), queue;
  while (true) {
    std::vector<bool> seen(count, false);
    seen[start] = true;
    queue.assign(1, start);
    for (std::size_t at = 0; at < queue.size() && !seen[goal]; ++at)
      for (std::size_t next = 0; next < count; ++next)
        if (!seen[next] && capacity[queue[at]][next] > 0) {
          seen[next] = true;
          before[next] = queue[at];
          queue.push_back(next);
        }
    if (!seen[goal] || flow >= enough) {
      if (reached) *reached = seen;
      return flow;
    }
    long long step = enough - flow;
    for (std::size_t at = goal; at != start; at = before[at]) step = std::min(step, capacity[before[at]][at]);
    for (std::size_t at = goal; at != start; at = before[at]) {
      capacity[before[at]][at] -= step;
      capacity[at][before[at]] += step;
    }
    flow += step;
  }
}

long long least_cut(const Capacity& capacity) {
  constexpr long long endless = 1ll << 40;
  long long least = endless;
  for (int gpu = 1; gpu < capacity.gpus; ++gpu) {
    least = std::min(least, max_flow(capacity.links, 0, gpu, endless));
    least = std::min(least, max_flow(capacity.links, gpu, 0, endless));
  }
  return capacity.gpus < 2 ? 0 : least;
}

Ratio gather_bound(const Capacity& capacity) {
  const auto gpus = static_cast<std::size_t>(capacity.gpus);
  if (gpus < 2) return {};
  Ratio bound{-1, 1};
  long long parts = 0;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    const Ratio own{std::accumulate(capacity.links[gpu].begin(), capacity.links[gpu].end(), 0ll),
                    capacity.parts_at(gpu)};
    if (bound.numerator < 0 || own.numerator * bound.denominator < bound.numerator * own.denominator) bound = own;
    parts += capacity.parts_at(gpu);
  }
  // Dinkelbach's method: while a set has a smaller ratio than the bound, this ratio becomes the new bound.
  for (bool lower = true; lower && bound.numerator > 0;) {
    lower = false;
    const std::size_t source = capacity.links.size();
    auto graph = capacity.links;
    for (auto& row : graph) {
      for (long long& links : row) links *= bound.denominator;
      row.push_back(0);
    }
    graph.emplace_back(source + 1, 0);
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) graph[source][gpu] = bound.numerator * capacity.parts_at(gpu);
    const long long all = bound.numerator * parts;
    for (std::size_t gpu = 0; gpu < gpus && !lower; ++gpu) {
      std::vector<bool> near;
      if (max_flow(graph, static_cast<int>(source), static_cast<int>(gpu), all, &near) >= all) continue;
      Ratio found{0, 0};
      for (std::size_t a = 0; a < source; ++a) {
        if (!near[a]) continue;
        found.denominator += a < gpus ? capacity.parts_at(a) : 0;
        for (std::size_t b = 0; b < source; ++b)
          if (!near[b]) found.numerator += capacity.links[a][b];
      }
      const long long common = std::max(1ll, std::gcd(found.numerator, found.denominator));
      bound = {found.numerator / common, found.denominator / common};
      lower = true;
    }
  }
  return bound.numerator <= 0 ? Ratio{} : bound;
}

}  // namespace tutti::topology
