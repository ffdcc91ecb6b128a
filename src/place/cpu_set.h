// Sets of CPUs, by the system's numbers.
#pragma once

#include <sched.h>

#include <bitset>
#include <span>
#include <string>

namespace tutti {

/// CPUs from CPU_SETSIZE on are not in any set: a rank that runs on them counts as not bound.
using CpuSet = std::bitset<CPU_SETSIZE>;

CpuSet cpus_in(const cpu_set_t& set);
CpuSet cpus_in(std::span<const int> list);
cpu_set_t system_set(const CpuSet& cpus);

int first_cpu(const CpuSet& cpus);        ///< -1: there is none
std::string text_of(const CpuSet& cpus);  ///< "0-3,8"; "none"

inline bool within(const CpuSet& some, const CpuSet& all) {
  return (some & ~all).none();
}

}  // namespace tutti
