// What is near a CPU or a device of this machine, as the system says.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "place/cpu_set.h"
#include "place/thread_cpus.h"

namespace tutti {

/// Read when it is first asked for, and kept. Without the detector (see cmake/dependencies.cmake) nothing is known.
/// Thread-safe.
class CpuMap {
 public:
  /// `root`: a folder that contains another machine's /sys.
  explicit CpuMap(std::string root = {}) : root_(std::move(root)) {}

  CpuSet part_of(Part part, int cpu);
  std::vector<NumaNode> nodes();  ///< with CPUs or without; none: unknown

  struct Device {
    CpuSet cpus;    ///< near it; none: unknown
    int node = -1;  ///< its NUMA node; -1: unknown, or the machine has one node
  };
  Device device(const std::string& bus_id);

 private:
  void read_nodes();

  std::string root_;
  std::mutex mutex_;
  std::map<std::pair<Part, int>, CpuSet> parts_;
  std::vector<NumaNode> nodes_;
  bool nodes_read_ = false;
};

}  // namespace tutti
