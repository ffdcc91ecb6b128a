// A machine, its channels and its warnings as JSON.
#pragma once

#include <span>
#include <string>

#include "topology/graph/rdma_port.h"
#include "topology/graph/topology.h"
#include "topology/search/constants.h"
#include "topology/search/search.h"

namespace tutti::topology {

/// One object: `devices` (kind, name, busid, numa, index, parent, gbps), `matrix` (kinds as printed by nvidia-smi, GPUs
/// then NICs), `matrix_names`, `paths` (of GPUs and NICs: kind, gbps, hops), `links`, `rings` (count, gbps_each, kind,
/// orders), `levels` and `near_cpus` (one rank per GPU; see placement.h), `nvlink_known`, `allowed_cpus`, `trees`
/// (root, gbps, gpus, parents), `cut_bound_gbps`, `constants` (what, value, unit, source; those of this topology and
/// `measured`), `rdma_ports` (device, port, state, rate, link_layer, gids: index, address, type), `warnings`.
std::string json(const Topology& topology, const Search& search, std::span<const Constant> measured = {},
                 std::span<const RdmaPort> rdma = {});

/// A line for each port and each of its GIDs; empty if there are none.
std::string rdma_text(std::span<const RdmaPort> ports);

/// The channels as text.
std::string search_text(const Search& search);

}  // namespace tutti::topology
