// CPUs: their makers, and sets of CPUs in the system's notations, "0-3,8" and "ffff0000,00000000".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

inline constexpr std::size_t cpus_max = 8192;

/// Ascending, without repetition. A text that is not a list gives none; CPUs from cpus_max on are left out.
std::vector<int> cpus_of_list(std::string_view list);
std::string list_of_cpus(const std::vector<int>& cpus);

/// Converts a mask of NCCL and sysfs, "ffffffff,00000000", to a list, "32-63"; empty if it is not a mask.
std::string cpu_list_of_mask(std::string_view mask);
/// The other way; `cpus` is in the order of cpus_of_list.
std::string mask_of_cpus(const std::vector<int>& cpus);

/// "GenuineIntel" and "x86_64", "" and "arm64".
CpuMaker maker_of(std::string_view vendor, std::string_view arch);

/// The CPUs that are in both lists.
std::string common_cpus(std::string_view one, std::string_view other);

}  // namespace tutti::topology
