// The part of the machine that this process may use, by its affinity and its control group.
#include <charconv>

#include <fmt/format.h>

#include "base/file.h"
#include "topology/graph/cpus.h"
#include "topology/sources/detect.h"

namespace tutti::topology {
namespace {

/// The text after `key` in its line; empty if there is none.
std::string behind(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + key.size());
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t");
    return std::string(first == std::string_view::npos ? "" : line.substr(first));
  }
  return {};
}

/// The fraction of each period that the group may run, both in microseconds; "max" and -1 mean no limit.
double share(std::string_view quota, std::string_view period) {
  long long used = 0, of = 0;
  std::from_chars(quota.data(), quota.data() + quota.size(), used);
  std::from_chars(period.data(), period.data() + period.size(), of);
  return used > 0 && of > 0 ? static_cast<double>(used) / static_cast<double>(of) : 0;
}

/// How many CPUs' time the control group allows; 0: no limit, or unknown. Tries version 2, then 1.
double cpus_worth(const std::string& root) {
  const std::string mine = behind(content_of(root + "/proc/self/cgroup"), "0::");
  const std::string groups = root + "/sys/fs/cgroup";
  for (const std::string& folder : {groups + mine, groups})
    if (const std::string limit = content_of(folder + "/cpu.max"); !limit.empty()) {
      const std::size_t space = limit.find(' ');
      return space == std::string::npos ? 0 : share(limit.substr(0, space), limit.substr(space + 1));
    }
  return share(content_of(groups + "/cpu/cpu.cfs_quota_us"), content_of(groups + "/cpu/cpu.cfs_period_us"));
}

}  // namespace

void add_limits(Topology& topology, const std::string& root) {
  std::string all;
  for (const int node : topology.of_kind(DeviceKind::numa))
    all += (all.empty() || topology[node].cpus.empty() ? "" : ",") + topology[node].cpus;
  all = list_of_cpus(cpus_of_list(all));
  topology.allowed_cpus =
      list_of_cpus(cpus_of_list(behind(content_of(root + "/proc/self/status"), "Cpus_allowed_list:")));
  if (all.empty() || topology.allowed_cpus.empty()) return;
  const std::string usable = common_cpus(topology.allowed_cpus, all);
  topology.allowed_cpus = usable;
  if (usable != all) topology.notes.push_back(fmt::format("this process may run only on CPUs {} of {}", usable, all));
  const double worth = cpus_worth(root);
  const auto count = static_cast<double>(cpus_of_list(usable).size());
  if (worth > 0 && worth < count - 0.005)
    topology.notes.push_back(
        fmt::format("the control group of this process gives it the time of {:.4g} of {} CPUs", worth, count));
}

}  // namespace tutti::topology
