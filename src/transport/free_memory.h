// How much memory this process may still take before the kernel refuses an allocation or kills a process.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace tutti {

struct FreeMemory {
  std::size_t bytes = 0;
  std::string limit;  ///< what sets the limit: "/proc/meminfo MemAvailable", "/sys/fs/cgroup/job/memory.max"
};

/// The least of the host's available memory and the allowance of each control group above this process; nothing if
/// neither can be read. `read_file` returns a file's text, or nothing if there is no such file.
std::optional<FreeMemory> free_memory(
    const std::function<std::optional<std::string>(const std::string& path)>& read_file);

/// Reads this host's files.
std::optional<FreeMemory> free_memory();

}  // namespace tutti
