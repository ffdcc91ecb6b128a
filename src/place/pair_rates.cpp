#include "place/pair_rates.h"

#include <algorithm>
#include <set>

#include "place/job_map.h"
#include "topology/graph/path.h"

namespace tutti {

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

}  // namespace tutti
