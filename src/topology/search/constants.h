// The numbers with which a machine is evaluated, and the source of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

struct Constant {
  std::string what;  ///< "between the CPUs of two NUMA nodes"
  double value = 0;
  std::string source = {};    ///< "measured", "said by sysfs", "table (Intel, model 0x8f)"
  std::string unit = "GB/s";  ///< in each direction, or "us"
  bool operator==(const Constant&) const = default;
};

/// The constants used for paths and rings of this machine, each once.
std::vector<Constant> constants(const Topology& topology);

/// One line each, in columns.
std::string constants_text(std::span<const Constant> constants);

}  // namespace tutti::topology
