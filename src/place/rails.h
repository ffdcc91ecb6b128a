// Several rings through all ranks of a job, made of the rings inside its hosts: each leaves a host by another rank, so
// that all NICs of the host are busy at once.
#pragma once

#include <span>
#include <vector>

#include "plan/types.h"
#include "topology/graph/topology.h"

namespace tutti {

/// What rings do inside one host.
struct HostRings {
  std::vector<std::vector<Rank>> orders;  ///< of all its ranks, at least one: from each to the next and around
  std::vector<Rank> entry_ranks = {};     ///< by ring of the job: its first rank in the host
};

/// For each of `count` rings, which of a host's ranks is its entry rank, all different; there are at least as many
/// ranks. `devices`: by rank, of `machine`. Where it has NICs, each of the fast ones in turn gets the rank nearest to
/// it; else entry ranks are evenly spread.
std::vector<int> entry_ranks_of(const topology::Topology* machine, std::span<const int> devices, std::size_t count);

/// As many rings as each host has entry ranks. Ring k goes through the hosts one after the other. It begins at its
/// entry rank, goes along the k-th ring of the host and ends at the rank before its entry rank. A host with fewer rings
/// has some followed several times. Where another ring of the host lets ring k end at a rank at which no ring before it
/// ends, it follows that one.
std::vector<std::vector<Rank>> rings_through(std::span<const HostRings> hosts);

}  // namespace tutti
