// CPUs: who made them, and sets of them as the system spells them, "0-3,8" and "ffff0000,00000000".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topology/graph/topology.h"

namespace tutti::topology {

inline constexpr std::size_t cpus_max = 8192;

/// Ascending, each once; what is no list gives none, CPUs from cpus_max on are left out.
std::vector<int> cpus_of_list(std::string_view list);
std::string list_of_cpus(const std::vector<int>& cpus);

/// A mask of NCCL and sysfs, "ffffffff,00000000", as a list "32-63"; empty where it is none.
std::string cpu_list_of_mask(std::string_view mask);
std::string mask_of_cpu_list(std::string_view list);
/// `cpus` as cpus_of_list gives them.
std::string mask_of_cpus(const std::vector<int>& cpus);

/// "GenuineIntel" and "x86_64", "" and "arm64".
CpuMaker maker_of(std::string_view vendor, std::string_view arch);

/// What is in both lists.
std::string common_cpus(std::string_view one, std::string_view other);

}  // namespace tutti::topology
