#include "topology/search/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace tutti::topology {
namespace {

struct LocationPart {
  const char *one, *many;
};
constexpr std::array parts = {LocationPart{"host", "hosts"},
                              LocationPart{"package", "packages"},
                              LocationPart{"NUMA node", "NUMA nodes"},
                              LocationPart{"cache", "caches"},
                              LocationPart{"NVLink domain", "NVLink domains"},
                              LocationPart{"PCI switch", "PCI switches"}};

/// The first part of a location by which ranks fall into the groups of this level; the number of parts if none does.
std::size_t part_of(const Job& job, const std::vector<int>& level) {
  std::size_t part = 0;
  constexpr std::size_t of_hosts = location_parts - parts.size();  // equal in a host, and no level is named for them
  while (part < parts.size() && grouped(job.locations, of_hosts + part + 1) != level) ++part;
  return part;
}

}  // namespace

std::vector<int> entries_of(const Job& job) {
  std::vector<int> entries(job.hosts.size(), 0);
  for (std::size_t at = 0; at < job.order.size(); ++at) {
    const int from = job.host_of(job.order[at]), to = job.host_of(job.order[(at + 1) % job.order.size()]);
    if (from != to) ++entries[static_cast<std::size_t>(to)];
  }
  return entries;
}

std::string level_name(const Job& job, std::size_t level) {
  const int groups = *std::ranges::max_element(job.levels[level]) + 1;
  const std::size_t part = part_of(job, job.levels[level]);
  if (part == parts.size()) return fmt::format("{} groups", groups);
  return fmt::format("{} {}", groups, groups == 1 ? parts[part].one : parts[part].many);
}

bool has_level_of(const Job& job, std::size_t part) {
  return std::ranges::any_of(job.levels, [&](const auto& level) { return part_of(job, level) == part; });
}

std::vector<int> hosts_along_ring(const Job& job) {
  std::vector<int> hosts;
  std::vector<bool> seen(job.hosts.size(), false);
  for (const int rank : job.order) {
    const int host = job.host_of(rank);
    if (!seen[static_cast<std::size_t>(host)]) hosts.push_back(host);
    seen[static_cast<std::size_t>(host)] = true;
  }
  return hosts;
}

std::string ring_verdict(const Job& job) {
  if (job.hosts.size() < 2) return "There is one host: the ring stays inside it.";
  const std::vector<int> entries = entries_of(job);
  const int crossings = std::accumulate(entries.begin(), entries.end(), 0);
  const auto least = static_cast<int>(job.hosts.size());
  if (crossings == least) return fmt::format("The ring enters and leaves each of {} hosts once.", least);
  const auto worst = std::ranges::max_element(entries);
  return fmt::format("The ring goes from host to host {} times where {} would do: {} is entered {} times.", crossings,
                     least, job.hosts[static_cast<std::size_t>(worst - entries.begin())].name, *worst);
}

}  // namespace tutti::topology
