#include "place/rails.h"

#include <algorithm>
#include <tuple>

#include "topology/graph/path.h"

namespace tutti {
namespace {

/// The rank from which a ring inside a host comes to `entry_rank`.
Rank before(const std::vector<Rank>& order, Rank entry_rank) {
  const auto at = std::ranges::find(order, entry_rank);
  return at == order.begin() ? order.back() : *(at - 1);
}

/// Which ring of its host the ring number `ring` of the job follows from its entry rank.
const std::vector<Rank>& order_for(const HostRings& host, std::size_t ring, const std::vector<Rank>& ends) {
  const std::size_t count = host.orders.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& order = host.orders[(ring + i) % count];
    if (std::ranges::find(ends, before(order, host.entry_ranks[ring])) == ends.end()) return order;
  }
  return host.orders[ring % count];
}

/// Those that carry a job's data: not a host's slow ones, which are for other purposes.
std::vector<int> fast_nics(const topology::Topology& machine) {
  std::vector<int> nics = machine.nics();
  double fastest = 0;
  for (const int nic : nics) fastest = std::max(fastest, machine[nic].network_gbps);
  std::erase_if(nics, [&](int nic) { return 2 * machine[nic].network_gbps < fastest; });
  return nics;
}

}  // namespace

std::vector<int> entry_ranks_of(const topology::Topology* machine, std::span<const int> devices, std::size_t count) {
  const bool placed = machine != nullptr && std::ranges::find(devices, -1) == devices.end();
  const std::vector<int> nics = placed ? fast_nics(*machine) : std::vector<int>{};
  std::vector<int> entry_ranks;
  std::vector<bool> used(devices.size(), false);
  for (std::size_t ring = 0; ring < count; ++ring) {
    std::size_t entry_rank = ring * devices.size() / count;
    if (!nics.empty()) {
      const int nic = nics[nics.size() > count ? ring * nics.size() / count : ring % nics.size()];
      auto nearest = std::tuple(true, topology::PathKind::dis, 0);
      for (std::size_t i = 0; i < devices.size(); ++i) {
        const topology::Path way = topology::path(*machine, devices[i], nic);
        const auto distance = std::tuple(static_cast<bool>(used[i]), way.kind, way.hops);
        if (i > 0 && distance >= nearest) continue;
        nearest = distance;
        entry_rank = i;
      }
    }
    used[entry_rank] = true;
    entry_ranks.push_back(static_cast<int>(entry_rank));
  }
  return entry_ranks;
}

std::vector<std::vector<Rank>> rings_through(std::span<const HostRings> hosts) {
  std::vector<std::vector<Rank>> rings(hosts.front().entry_ranks.size());
  for (const HostRings& host : hosts) {
    std::vector<Rank> ends;
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
      std::vector<Rank> order = order_for(host, ring, ends);
      std::rotate(order.begin(), std::ranges::find(order, host.entry_ranks[ring]), order.end());
      ends.push_back(order.back());
      rings[ring].insert(rings[ring].end(), order.begin(), order.end());
    }
  }
  return rings;
}

}  // namespace tutti
