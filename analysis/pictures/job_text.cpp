// A job as text: hosts, levels, order, and how often the ring enters a host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/pictures/job_picture.h"
#include "base/printable.h"
#include "topology/graph/cpus.h"

namespace tutti::topology {
namespace {

constexpr std::size_t hosts_shown = 64, groups_shown = 64;

/// "0-3,8-11": runs of ranks, as of CPUs.
std::string members_text(const std::vector<int>& level, std::size_t groups_max) {
  std::map<int, std::vector<int>> members;
  for (std::size_t rank = 0; rank < level.size(); ++rank) members[level[rank]].push_back(static_cast<int>(rank));
  std::vector<std::string> groups;
  for (const auto& [group, ranks] : members) {
    if (groups.size() == groups_max) break;
    groups.push_back(list_of_cpus(ranks));
  }
  return fmt::format("{}{}", joined(groups, " | "), members.size() > groups_max ? " | …" : "");
}

}  // namespace

std::string job_text(const Job& job) {
  std::string text = fmt::format("Job: {} ranks on {} host{}\n", job.locations.size(), job.hosts.size(),
                                 job.hosts.size() == 1 ? "" : "s");
  std::vector<std::vector<int>> ranks(job.hosts.size());
  for (std::size_t rank = 0; rank < job.locations.size(); ++rank)
    ranks[static_cast<std::size_t>(job.locations[rank].host)].push_back(static_cast<int>(rank));
  for (std::size_t host = 0; host < job.hosts.size() && host < hosts_shown; ++host)
    text += fmt::format("  {}: ranks {}\n", job.hosts[host].name, list_of_cpus(ranks[host]));
  if (job.hosts.size() > hosts_shown) text += fmt::format("  and {} more hosts\n", job.hosts.size() - hosts_shown);
  text += job.levels.empty() ? "Levels: none\n" : "Levels:\n";
  for (std::size_t level = 0; level < job.levels.size(); ++level)
    text += fmt::format("  {}: {}\n", level_name(job, level), members_text(job.levels[level], groups_shown));
  text += fmt::format("Order: {}\n{}\n", joined(job.order, " "), ring_verdict(job));
  if (!job.rings.empty()) text += "Rings, each for a share of the data:\n";
  for (const std::vector<int>& ring : job.rings) text += fmt::format("  {}\n", joined(ring, " "));
  if (std::ranges::any_of(job.machines, [](const Topology& m) { return !m.nvlink_known && !m.gpus().empty(); }))
    text += "Links between GPUs are not known: levels and rings are without them\n";
  return text;
}

}  // namespace tutti::topology
