// What sources leave open about NVLinks: switches hidden behind links between all GPUs, and whether there are links.
#pragma once

#include <string_view>

#include "topology/graph/topology.h"

namespace tutti::topology {

/// Gives GPUs that have more NVLinks to each other than a GPU can have a switch instead, each with as many links to it
/// as its row shows. GPUs without NVLinks, and GPUs on other switches, are no part of it. Notes pairs whose links do
/// not follow from it.
void find_switches(Topology& topology);

/// Marks the links of these GPUs as unknown and notes it: "{why}: NVLinks are not known". Nothing without GPUs.
void mark_links_unknown(Topology& topology, std::string_view why);
bool has_nvidia(const Topology& topology);  ///< a GPU of NVIDIA, or one whose maker is not known
bool has_amd(const Topology& topology);

}  // namespace tutti::topology
