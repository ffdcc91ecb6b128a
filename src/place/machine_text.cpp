#include "place/machine_text.h"

#include <algorithm>

#include "topology/graph/topology.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti {

std::string machine_text(const topology::Topology& machine) {
  topology::Topology alike = machine;
  for (topology::Device& device : alike.devices) device.gbps = std::max(device.gbps, device.gbps_max);
  return topology::write_hwloc(alike);
}

Result<SharedMachine> read_machine_text(std::string_view text) {
  auto machine = topology::read(text, "another host");
  if (!machine) return Error{.code = Code::remote, .what = "not a machine: " + machine.error().text()};
  return std::make_shared<const topology::Topology>(*std::move(machine));
}

}  // namespace tutti
