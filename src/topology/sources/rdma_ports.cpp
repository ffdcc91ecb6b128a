#include "topology/sources/rdma_ports.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "topology/sources/sysfs_files.h"

namespace tutti::topology {
namespace {

/// "4: ACTIVE" without the number.
std::string state_of(const std::string& line) {
  const auto colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

std::vector<RdmaPort::Gid> gids_of(const std::string& folder) {
  std::vector<RdmaPort::Gid> gids;
  for (const std::string& name : names_in(folder + "/gids")) {
    const std::string address = line_of(folder + "/gids/" + name);
    if (address.find_first_not_of("0:") == std::string::npos) continue;  // not set
    gids.push_back(
        {.index = std::atoi(name.c_str()), .address = address, .type = line_of(folder + "/gid_attrs/types/" + name)});
  }
  std::ranges::sort(gids, {}, &RdmaPort::Gid::index);
  return gids;
}

}  // namespace

std::vector<RdmaPort> rdma_ports(const std::string& root) {
  const std::string devices = root + "/sys/class/infiniband";
  std::vector<RdmaPort> ports;
  for (const std::string& device : names_in(devices))
    for (const std::string& number : names_in(devices + "/" + device + "/ports")) {
      const std::string folder = devices + "/" + device + "/ports/" + number;
      ports.push_back({.device = device,
                       .number = std::atoi(number.c_str()),
                       .state = state_of(line_of(folder + "/state")),
                       .rate = line_of(folder + "/rate"),
                       .link_layer = line_of(folder + "/link_layer"),
                       .gids = gids_of(folder)});
    }
  return ports;
}

}  // namespace tutti::topology
