// Measures this machine's CPUs, within and between its NUMA nodes.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/search/constants.h"

struct Measured {
  std::vector<tutti::topology::Constant> constants;
  std::vector<std::string> undone;  ///< a line for each measurement that other work, or having a single CPU, prevented
  std::string machine_file;         ///< the text of a TUTTI_MACHINE_FILE for the first NUMA node; empty: not measured
};

/// Within each NUMA node and between each two of them, four at most, by two threads on CPUs that this process may use:
/// some tenths of a second each.
Measured measure_places(const tutti::topology::Topology& machine);
