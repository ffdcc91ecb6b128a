#include "place/locations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/fixed_text.h"
#include "place/cpu_set.h"
#include "place/rails.h"
#include "topology/graph/cpus.h"
#include "topology/graph/path.h"
#include "topology/search/placement.h"
#include "topology/sources/cpus_near.h"

namespace tutti {
namespace {

using topology::DeviceKind;
using topology::RankLocation;
using topology::Topology;
using Orders = std::vector<std::vector<Rank>>;

/// The items of `all` with these numbers.
std::vector<int> picked(std::span<const int> all, std::span<const int> numbers) {
  std::vector<int> some;
  for (const int number : numbers) some.push_back(all[static_cast<std::size_t>(number)]);
  return some;
}

/// The ranks of each host, by number; hosts in the order of their first ranks.
std::vector<std::vector<Rank>> ranks_by_host(std::span<const int> hosts) {
  std::vector<std::vector<Rank>> of_host(hosts.size());
  for (Rank rank = 0; rank < static_cast<Rank>(hosts.size()); ++rank)
    of_host[static_cast<std::size_t>(hosts[static_cast<std::size_t>(rank)])].push_back(rank);
  std::erase_if(of_host, [](const auto& ranks) { return ranks.empty(); });
  return of_host;
}

/// The same, hosts in the order in which a map that has one passes them.
std::vector<std::vector<Rank>> ranks_by_host(std::span<const int> hosts, const JobMap& map) {
  auto by_host = ranks_by_host(hosts);
  std::vector<std::size_t> first(hosts.size());
  for (std::size_t at = map.order.size(); at-- > 0;)
    first[static_cast<std::size_t>(hosts[static_cast<std::size_t>(map.order[at])])] = at;
  std::ranges::stable_sort(by_host, {},
                           [&](const auto& ranks) { return first[static_cast<std::size_t>(ranks.front())]; });
  return by_host;
}

/// The GPU at this PCI address, or its first part; -1: there is none.
int gpu_at(const Topology& machine, const std::string& bus_id) {
  if (bus_id.empty()) return -1;
  const std::vector<int> gpus = machine.gpus();
  const auto found = std::ranges::find(gpus, bus_id, [&](int gpu) { return machine[gpu].bus_id; });
  return found != gpus.end() ? *found : -1;
}

/// A device for each of the ranks of a host: GPUs in turn, or NUMA nodes in blocks.
std::vector<int> devices_for(const Topology& machine, std::size_t ranks) {
  const std::vector<int> gpus = machine.gpus(), nodes = machine.of_kind(DeviceKind::numa);
  std::vector<int> devices;
  for (std::size_t i = 0; i < ranks; ++i)
    devices.push_back(!gpus.empty()    ? gpus[ranks <= gpus.size() ? i : i * gpus.size() / ranks]
                      : !nodes.empty() ? nodes[i * nodes.size() / ranks]
                                       : -1);
  return devices;
}

/// Orders of one host's ranks, neighbours next to each other: along different rings of the machine's links where every
/// rank has a device.
Orders rings_of(const Topology& machine, std::span<const Rank> ranks, const std::vector<int>& devices) {
  Orders orders;
  topology::RankChannels channels;
  if (std::ranges::find(devices, -1) == devices.end()) channels = topology::channels_of(machine, devices);
  for (const auto& channel : channels.orders) {
    std::vector<Rank> order = picked(ranks, channel);
    // A ring begins anywhere: at the lowest rank.
    std::rotate(order.begin(), std::ranges::min_element(order), order.end());
    if (std::ranges::find(orders, order) == orders.end()) orders.push_back(std::move(order));
  }
  if (orders.empty()) orders.emplace_back(ranks.begin(), ranks.end());
  return orders;
}

/// Of ranks that are not at devices: by what they share.
std::vector<Rank> by_location(std::vector<Rank> ranks, const std::vector<RankLocation>& locations) {
  std::ranges::stable_sort(ranks, {}, [&](Rank rank) {
    const RankLocation& location = locations[static_cast<std::size_t>(rank)];
    return std::tuple(location.package, location.numa, location.cache, location.nvlink, location.pci_switch);
  });
  return ranks;
}

/// At most `fit` rings for a job: those of its only host, or as many through all hosts as each has ranks.
Orders rings_of_job(std::vector<HostRings> hosts, std::size_t fit, const JobLocations& places,
                    const HostMachines& machines) {
  std::size_t count = hosts.size() == 1 ? hosts.front().orders.size() : fit;
  for (const HostRings& host : hosts) count = std::min({count, fit, host.orders[0].size()});
  if (count < 2) return {};
  if (hosts.size() == 1) {
    hosts.front().orders.resize(count);
    return std::move(hosts.front().orders);
  }
  std::map<std::pair<const Topology*, std::vector<int>>, std::vector<int>> known;  // hosts are often alike
  for (HostRings& host : hosts) {
    const std::vector<int> devices = picked(places.devices, host.orders[0]);
    const Topology* const machine = machines.of(host.orders[0].front());
    const auto [entry_ranks, is_new] = known.try_emplace({machine, devices});
    if (is_new) entry_ranks->second = entry_ranks_of(machine, devices, count);
    host.entry_ranks = picked(host.orders[0], entry_ranks->second);
  }
  return rings_through(hosts);
}

/// MB/s from each rank to each other along the path between their devices, by from · ranks + to; 0: unknown, or the
/// same device. `devices`: by rank, ids; -1: none. Empty where they tell nothing: all pairs are alike, some rank has no
/// device, or there are more ranks than pairs are of use for.
std::vector<std::uint32_t> pair_rates(const topology::Topology& machine, std::span<const int> devices) {
  constexpr double most_gbps = 1e5;
  if (devices.size() < 3 || devices.size() > paired_ranks_max || std::ranges::find(devices, -1) != devices.end())
    return {};
  std::vector<std::uint32_t> rates;
  std::set<std::uint32_t> kinds;
  for (const int from : devices)
    for (const int to : devices) {
      const double gbps = from == to ? 0 : std::clamp(topology::path(machine, from, to).gbps, 0.0, most_gbps);
      rates.push_back(static_cast<std::uint32_t>(1000 * gbps));
      if (from != to) kinds.insert(rates.back());
    }
  const bool shared = std::set(devices.begin(), devices.end()).size() < devices.size();
  return kinds.size() > 1 || (shared && !kinds.empty()) ? rates : std::vector<std::uint32_t>{};
}

/// The ranks of one host in the order in which a ring of the job passes them; by number if it has none.
std::vector<Rank> part_of(const std::vector<Rank>& ring, const std::vector<Rank>& ranks) {
  std::vector<Rank> part;
  for (const Rank rank : ring)
    if (std::ranges::binary_search(ranks, rank)) part.push_back(rank);
  return part.empty() ? ranks : part;
}

/// The package, NUMA node and last-level cache that all of `cpus` are part of.
ReportedLocation location_on(const Topology& machine, const cpu_set_t& cpus) {
  ReportedLocation location;
  int home = -1;
  const CpuSet own = cpus_in(cpus);
  if (own.none()) return location;
  for (const int node : machine.of_kind(DeviceKind::numa))
    if (within(own, cpus_in(topology::cpus_of_list(machine[node].cpus)))) {
      location.numa = machine[node].index;
      home = node;
      if (const int package = machine.above(node, DeviceKind::package); package >= 0)
        location.package = machine[package].index;
    }
  const std::vector<int> sharing = topology::cpus_of_cache(first_cpu(own), "");
  if (within(own, cpus_in(sharing))) location.cache = sharing.front();
  put_text(location.nic, topology::nearest_nic(machine, home));
  return location;
}

}  // namespace

ReportedLocation location_at_gpu(const Topology& machine, const cpu_set_t& cpus, const std::string& bus_id) {
  ReportedLocation location;
  if (const int gpu = gpu_at(machine, bus_id); gpu >= 0) {
    const RankLocation at = topology::location_at(0, machine, gpu);
    location.package = at.package;
    location.numa = at.numa;
    put_text(location.nic, topology::nearest_nic(machine, gpu));
  } else {
    location = location_on(machine, cpus);
  }
  put_text(location.gpu, bus_id);
  return location;
}

JobLocations job_locations(std::span<const ReportedLocation> told, std::span<const int> hosts,
                           const HostMachines& machines) {
  JobLocations places{.locations = std::vector<RankLocation>(told.size()),
                      .devices = std::vector<int>(told.size(), -1)};
  std::vector<HostGroups> groups;
  for (const ReportedLocation& location : told) groups.push_back(location.groups);
  const auto numbers = numbered(groups, hosts);
  for (const auto& ranks : ranks_by_host(hosts)) {
    const bool recorded =
        std::ranges::all_of(ranks, [&](Rank rank) { return told[static_cast<std::size_t>(rank)].recorded != 0; });
    const Topology* const machine = machines.of(ranks.front());
    std::vector<int> devices(ranks.size(), -1);
    if (recorded && machine != nullptr) devices = devices_for(*machine, ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(ranks[i]);
      if (!recorded && machine != nullptr) devices[i] = gpu_at(*machine, get_text(told[rank].gpu));
      places.devices[rank] = devices[i];
      places.locations[rank] = devices[i] >= 0 ? topology::location_at(ranks.front(), *machine, devices[i])
                                               : RankLocation{.host = ranks.front(),
                                                              .package = told[rank].package,
                                                              .numa = told[rank].numa,
                                                              .cache = told[rank].cache};
      places.locations[rank].groups = numbers[rank];
    }
  }
  return places;
}

JobMap map_of(std::span<const ReportedLocation> told, std::span<const int> hosts, const HostMachines& machines) {
  const JobLocations places = job_locations(told, hosts, machines);
  JobMap map;
  std::vector<HostRings> of_hosts;
  auto by_host = ranks_by_host(hosts);
  std::ranges::stable_sort(by_host, {}, [&](const auto& ranks) {  // the hosts of a group next to each other
    return places.locations[static_cast<std::size_t>(ranks.front())].groups;
  });
  for (const auto& ranks : by_host) {
    const std::vector<int> devices = picked(places.devices, ranks);
    const bool on_devices = std::ranges::find(devices, -1) == devices.end();
    of_hosts.push_back({.orders = on_devices ? rings_of(*machines.of(ranks.front()), ranks, devices)
                                             : Orders{by_location(ranks, places.locations)}});
    const std::vector<Rank>& order = of_hosts.back().orders[0];
    map.order.insert(map.order.end(), order.begin(), order.end());
  }
  if (std::ranges::is_sorted(map.order)) map.order.clear();
  map.levels = topology::levels_of(places.locations);
  map.rings = rings_of_job(std::move(of_hosts), rings_that_fit(map, told.size()), places, machines);
  if (const Topology* const machine = machines.of(0);
      machine != nullptr && std::ranges::all_of(hosts, [](int first) { return first == 0; }))
    map.pair_mbps = pair_rates(*machine, places.devices);
  return map;
}

Result<void> take_rings(JobMap& map, const std::vector<std::vector<int>>& rings, std::span<const int> hosts) {
  const auto by_host = ranks_by_host(hosts, map);
  if (by_host.front().size() != rings.front().size())
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("its ring has {} GPUs, the first host {} ranks", rings.front().size(),
                                     by_host.front().size())};
  const JobMap before = std::move(map);
  map = {.levels = before.levels, .pair_mbps = before.pair_mbps};
  const auto through_hosts = [&](const std::vector<int>& ring, std::size_t number) {
    const auto& others = before.rings.empty() ? before.order : before.rings[number % before.rings.size()];
    std::vector<Rank> whole;
    for (const auto& ranks : by_host) {
      const auto order = ranks.size() == ring.size() ? picked(ranks, ring) : part_of(others, ranks);
      whole.insert(whole.end(), order.begin(), order.end());
    }
    return whole;
  };
  map.order = through_hosts(rings.front(), 0);
  const std::size_t count = std::min(rings.size(), rings_that_fit(map, hosts.size()));
  for (std::size_t i = 0; i < count && rings.size() > 1; ++i) map.rings.push_back(through_hosts(rings[i], i));
  if (std::ranges::is_sorted(map.order)) map.order.clear();
  return {};
}

std::vector<std::vector<int>> rings_of_first_host(const JobMap& map, std::span<const int> hosts) {
  const std::vector<Rank> ranks = ranks_by_host(hosts).front();
  std::vector<std::vector<int>> rings;
  const auto add = [&](const std::vector<Rank>& ring) {
    rings.emplace_back();
    for (const Rank rank : part_of(ring, ranks))
      rings.back().push_back(static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin()));
  };
  if (map.rings.empty()) add(map.order);
  std::ranges::for_each(map.rings, add);
  return rings;
}

}  // namespace tutti
