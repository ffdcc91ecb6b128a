// Which groups of hosts this one is in, racks or pods: as a setting says, or Slurm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

inline constexpr std::size_t host_groups_max = 3;  ///< that are within each other

/// Outermost first; each a hash of its name and of those around it, so that rack 1 of one pod is not rack 1 of another.
/// 0: none.
using HostGroups = std::array<std::uint64_t, host_groups_max>;

/// Of TUTTI_TOPO_GROUPS: "pod2/rack7", outermost first; empty: none. Errors: invalid_argument (an empty name, or too
/// many).
Result<HostGroups> host_groups(std::string_view setting);

/// Of SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN, as "s0.s4.node12" and "switch.switch.node": the innermost
/// ones. None if they are empty or do not fit each other.
HostGroups host_groups_of_slurm(std::string_view address, std::string_view pattern);

/// Numbers of the groups of each rank's host, from 0 in order of their first ranks. A host is where its first rank says
/// it is; hosts that are in no group at some depth are together there. `hosts`: by rank, the first rank of its host.
std::vector<std::array<int, host_groups_max>> numbered(std::span<const HostGroups> told, std::span<const int> hosts);

}  // namespace tutti
