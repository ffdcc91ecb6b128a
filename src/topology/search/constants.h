// The numbers that a machine is judged by, and where each is from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

struct Constant {
  std::string what;  ///< "between the CPUs of two NUMA nodes"
  double value = 0;
  std::string unit;    ///< "GB/s" each way, or "us"
  std::string source;  ///< "measured", "said by sysfs", "table (Intel, model 0x8f)"
};

/// Those that paths and rings of this machine are counted with, each once.
std::vector<Constant> constants(const Topology& topology);

/// A line each, in columns.
std::string constants_text(std::span<const Constant> constants);

}  // namespace tutti::topology
