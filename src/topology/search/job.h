// The ranks of a job on their hosts: where each one is, which levels that makes, and how the ring goes round.
#pragma once

#include <string>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/search/placement.h"

namespace tutti::topology {

struct JobHost {
  std::string name;
  int machine = -1;  ///< which of Job::machines it is like; -1: only the locations of its ranks tell what it has
};

struct Job {
  std::string origin;                    ///< of the machine, for people; live: the job has run
  std::vector<JobHost> hosts;            ///< in the order of their first ranks
  std::vector<RankLocation> locations;   ///< by rank; RankLocation::host is an index of `hosts`
  std::vector<std::string> devices;      ///< by rank: the name of its GPU or NUMA node; empty: it has none of its own
  std::vector<std::string> nics;         ///< by rank: the name of the NIC nearest to it; empty: none is known
  std::vector<std::vector<int>> levels;  ///< as levels_of
  std::vector<int> order;                ///< of all ranks, from each to the next and back to the first
  std::vector<std::vector<int>> rings = {};  ///< more orders of all ranks, each for a share of the data; often none
  std::vector<Topology> machines = {};       ///< each kind of host once

  int host_of(int rank) const { return locations[static_cast<std::size_t>(rank)].host; }
  /// Null: unknown.
  const Topology* machine_of(int host) const {
    const int machine = hosts[static_cast<std::size_t>(host)].machine;
    return machine < 0 ? nullptr : &machines[static_cast<std::size_t>(machine)];
  }
};

/// How often the ring enters each host, which is how often it leaves it; 0 everywhere if there is one host.
std::vector<int> entries_of(const Job& job);

/// "8 PCI switches": how many groups a level has, and what they are; "8 groups" if no part of the locations makes them.
std::string level_name(const Job& job, std::size_t level);

/// Whether ranks of one host are told apart by this part of their locations.
bool has_level_of(const Job& job, std::size_t part);
inline constexpr std::size_t cache_part = 3, switch_part = 5;

/// Hosts in the order in which the ring first enters them.
std::vector<int> hosts_along_ring(const Job& job);

/// "The ring enters and leaves each of 4 hosts once.", or how far it is from that.
std::string ring_verdict(const Job& job);

}  // namespace tutti::topology
