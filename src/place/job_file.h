// A job as a whole, for people: as rank 0 of a communicator knows it, or as it would be on hosts that are alike; and
// how it is written down. tutti-topo reads and draws it.
#pragma once

#include <string>
#include <vector>

#include "place/job_map.h"
#include "place/locator.h"
#include "topology/graph/topology.h"
#include "topology/search/job.h"

namespace tutti {

topology::Job job_of(const JobRanks& ranks, const JobMap& map);

/// One object: `format` (2), `origin`, `hosts` (name, machine: an index of `machines`, -1: unknown), `ranks` (host,
/// package, numa, cache, nvlink, switch: numbers, -1: unknown; device, nic: names), `levels`, `order`, `rings` if there
/// are any, and `machines`: of each kind of host its packages, NUMA nodes, GPUs and NICs (kind, name, index, parent: an
/// index of this list, numa).
std::string to_json(const topology::Job& job);

/// A job that does not run: `hosts` hosts that are alike, each with as many ranks. They are filled one after the other
/// with the ranks in `filling`; empty: as they are numbered.
struct PlannedJob {
  int hosts = 1;
  int ranks_per_host = 1;
  std::vector<Rank> filling = {};
};

/// Rank → the lowest rank of its host.
std::vector<int> hosts_of(const PlannedJob& planned);

/// What the start of such a job would find out, by the code of a start. `machine`: of every host; null: unknown.
JobMap map_of(const PlannedJob& planned, const topology::Topology* machine);
topology::Job job_of(const PlannedJob& planned, const topology::Topology& machine);

}  // namespace tutti
