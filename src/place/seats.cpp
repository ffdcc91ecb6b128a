#include "place/seats.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/fixed_text.h"
#include "topology/graph/cpus.h"
#include "topology/search/placement.h"
#include "topology/sources/cpus_near.h"

namespace tutti {
namespace {

using topology::DeviceKind;
using topology::Seat;
using topology::Topology;

bool holds(const std::vector<int>& set, const std::vector<int>& cpus) {
  return std::ranges::includes(set, cpus);
}

std::vector<int> list_of(const cpu_set_t& cpus) {
  std::vector<int> list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus)) list.push_back(cpu);
  return list;
}

/// The ranks of each host, by number; hosts in the order of their first ranks.
std::vector<std::vector<Rank>> ranks_by_host(std::span<const int> hosts) {
  std::vector<std::vector<Rank>> of_host(hosts.size());
  for (Rank rank = 0; rank < static_cast<Rank>(hosts.size()); ++rank)
    of_host[static_cast<std::size_t>(hosts[static_cast<std::size_t>(rank)])].push_back(rank);
  std::erase_if(of_host, [](const auto& ranks) { return ranks.empty(); });
  return of_host;
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

/// Ranks of one host, neighbours next to each other: along a ring of the machine's links where every rank has a device.
std::vector<Rank> ring_of(const Topology& machine, std::span<const Rank> ranks, const std::vector<int>& devices) {
  std::vector<Rank> order(ranks.begin(), ranks.end());
  if (std::ranges::find(devices, -1) != devices.end()) return order;
  const auto channels = topology::channels_of(machine, devices);
  if (channels.orders.empty()) return order;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = ranks[static_cast<std::size_t>(channels.orders[0][i])];
  std::ranges::rotate(order, std::ranges::min_element(order));  // a ring begins anywhere: at the lowest rank
  return order;
}

}  // namespace

OwnSeat seat_on(const Topology& machine, const cpu_set_t& cpus) {
  OwnSeat seat;
  int home = -1;
  const std::vector<int> own = list_of(cpus);
  if (own.empty()) return seat;
  for (const int node : machine.of_kind(DeviceKind::numa))
    if (holds(topology::cpus_of_list(machine[node].cpus), own)) {
      seat.numa = machine[node].index;
      home = node;
      if (const int package = machine.above(node, DeviceKind::package); package >= 0)
        seat.package = machine[package].index;
    }
  const std::vector<int> sharing = topology::cpus_of_cache(own.front(), "");
  if (holds(sharing, own)) seat.cache = sharing.front();
  put_text(seat.nic, topology::nearest_nic(machine, home));
  return seat;
}

OwnSeat seat_at_gpu(const Topology& machine, const cpu_set_t& cpus, const std::string& bus_id) {
  OwnSeat seat;
  if (const int gpu = gpu_at(machine, bus_id); gpu >= 0) {
    const Seat at = topology::seat_at(0, machine, gpu);
    seat.package = at.package;
    seat.numa = at.numa;
    put_text(seat.nic, topology::nearest_nic(machine, gpu));
  } else {
    seat = seat_on(machine, cpus);
  }
  put_text(seat.gpu, bus_id);
  return seat;
}

Places places_of(std::span<const OwnSeat> told, std::span<const int> hosts, const HostMachines& machines) {
  Places places{.seats = std::vector<Seat>(told.size()), .devices = std::vector<int>(told.size(), -1)};
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
      places.seats[rank] = devices[i] >= 0 ? topology::seat_at(ranks.front(), *machine, devices[i])
                                           : Seat{.host = ranks.front(),
                                                  .package = told[rank].package,
                                                  .numa = told[rank].numa,
                                                  .cache = told[rank].cache};
    }
  }
  return places;
}

JobMap map_of(std::span<const OwnSeat> told, std::span<const int> hosts, const HostMachines& machines) {
  const Places places = places_of(told, hosts, machines);
  JobMap map;
  for (const auto& ranks : ranks_by_host(hosts)) {
    std::vector<int> devices;
    for (const Rank rank : ranks) devices.push_back(places.devices[static_cast<std::size_t>(rank)]);
    std::vector<Rank> order = ranks;
    if (std::ranges::find(devices, -1) == devices.end())
      order = ring_of(*machines.of(ranks.front()), ranks, devices);
    else
      std::ranges::stable_sort(order, {}, [&](Rank rank) {
        const Seat& seat = places.seats[static_cast<std::size_t>(rank)];
        return std::tuple(seat.package, seat.numa, seat.cache, seat.nvlink, seat.pci_switch);
      });
    map.order.insert(map.order.end(), order.begin(), order.end());
  }
  if (std::ranges::is_sorted(map.order)) map.order.clear();
  map.levels = topology::levels_of(places.seats);
  return map;
}

Result<void> take_ring(JobMap& map, const std::vector<int>& ring, std::span<const int> hosts) {
  const auto by_host = ranks_by_host(hosts);
  if (by_host.front().size() != ring.size())
    return Error{
        .code = Code::invalid_argument,
        .what = fmt::format("its ring has {} GPUs, the first host {} ranks", ring.size(), by_host.front().size())};
  std::vector<Rank> order = map.order;
  if (order.empty())
    for (const auto& ranks : by_host) order.insert(order.end(), ranks.begin(), ranks.end());
  for (const auto& ranks : by_host) {
    if (ranks.size() != ring.size()) continue;
    // The ranks of a host are next to each other.
    const auto first =
        std::ranges::find_if(order, [&](Rank rank) { return std::ranges::find(ranks, rank) != ranks.end(); });
    std::ranges::transform(ring, first, [&](int nth) { return ranks[static_cast<std::size_t>(nth)]; });
  }
  if (std::ranges::is_sorted(order)) order.clear();
  map.order = std::move(order);
  return {};
}

std::vector<int> ring_of_first_host(const JobMap& map, std::span<const int> hosts) {
  const std::vector<Rank> ranks = ranks_by_host(hosts).front();
  std::vector<int> ring;
  const auto add = [&](Rank rank) {
    if (const auto at = std::ranges::find(ranks, rank); at != ranks.end())
      ring.push_back(static_cast<int>(at - ranks.begin()));
  };
  if (map.order.empty()) std::ranges::for_each(ranks, add);
  std::ranges::for_each(map.order, add);
  return ring;
}

}  // namespace tutti
