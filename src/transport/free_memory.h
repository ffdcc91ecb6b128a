// How much memory this process may still take before the kernel refuses it, or kills somebody.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace tutti {

struct FreeMemory {
  std::size_t bytes = 0;
  std::string limit;  ///< what sets it: "/proc/meminfo MemAvailable", "/sys/fs/cgroup/job/memory.max"
};

/// The least of what the host has available and what each control group above this process allows; nothing where
/// neither can be read. `read_file` returns a file's text, or nothing when there is none.
std::optional<FreeMemory> free_memory(
    const std::function<std::optional<std::string>(const std::string& path)>& read_file);

/// From this host's files.
std::optional<FreeMemory> free_memory();

}  // namespace tutti
