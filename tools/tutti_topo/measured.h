// Measures this machine's CPUs, within and between its NUMA nodes.
#pragma once

#include <vector>

#include "topology/graph/topology.h"
#include "topology/search/constants.h"

/// Within each NUMA node and between each two of them, four at most, by two threads on CPUs that this process may use:
/// some tenths of a second each. `undone`: a line for each measurement that other work, or having a single CPU,
/// prevented.
std::vector<tutti::topology::Constant> measured_constants(const tutti::topology::Topology& machine,
                                                          std::vector<std::string>& undone);
