#include "tools/tutti_plan/recorded_rates.h"

#include <algorithm>
#include <vector>

#include "topology/search/placement.h"

namespace tutti::tool {
namespace {

/// What NCCL assumes of a hop between hosts (src/graph/tuning.cc, H100).
constexpr double network_hop_us = 5, network_message_us = 1;

/// GB/s that a rank has between hosts, if all ranks of a host send at once.
double network_gbps(const topology::Topology& machine, int ranks) {
  double all = 0;
  for (const int nic : machine.nics()) {
    const double uplink = machine[nic].gbps, network = machine[nic].network_gbps;
    all += network > 0 && uplink > 0 ? std::min(network, uplink) : std::max(network, uplink);
  }
  return all / ranks;
}

}  // namespace

Machine rates_of(const topology::Topology& machine, int ranks_per_host) {
  const std::vector<int> gpus = machine.gpus();
  if (gpus.empty()) return {};
  Machine rates = Machine::of_gpu();
  const auto rings = topology::channels_of(machine, gpus);
  if (const double gbps = static_cast<double>(rings.orders.size()) * rings.gbps_each; gbps > 0)
    for (Rates* far : {&rates.far.read, &rates.far.write}) far->gbps.fill(gbps);
  // A pass of a kernel that reads peers' memory is as fast as the links.
  for (auto& of_class : rates.loops.gbps)
    for (auto& at_footprint : of_class) at_footprint.fill(rates.far.read.gbps[0]);
  rates.wire = {.hop_us = network_hop_us, .message_us = network_message_us};
  if (const double gbps = network_gbps(machine, ranks_per_host); gbps > 0) rates.wire.gbps = gbps;
  return rates;
}

}  // namespace tutti::tool
