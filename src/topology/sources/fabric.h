// Finds the NVSwitches that a source hides behind links between all GPUs.
#pragma once

#include "topology/graph/topology.h"

namespace tutti::topology {

/// Gives GPUs that have more NVLinks to each other than a GPU can have a switch instead, each with as many links to it
/// as its row shows. GPUs without NVLinks, and GPUs on other switches, are no part of it. Notes pairs whose links do
/// not follow from it.
void find_switches(Topology& topology);

}  // namespace tutti::topology
