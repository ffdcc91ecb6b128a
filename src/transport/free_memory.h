// What the kernel says of memory: how much this process may still take before an allocation is refused or a process
// killed, and whether memory belongs to this process alone.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"

namespace tutti {

struct FreeMemory {
  std::size_t bytes = 0;
  std::string limit;  ///< what sets the limit: "/proc/meminfo MemAvailable", "/sys/fs/cgroup/job/memory.max"
};

/// As content_of.
using FileContent = std::function<std::string(const std::string& path)>;

/// The least of the host's available memory and the allowance of each control group above this process; nothing if
/// neither can be read.
std::optional<FreeMemory> free_memory(const FileContent& content = content_of);

/// Whether all of `memory` is private, anonymous and writable, as from malloc: no file, no shared memory, no stack, no
/// huge pages of hugetlbfs. `maps`: the text of /proc/PID/maps; false if it could not be read.
bool is_private_anonymous(std::span<const std::byte> memory, std::string_view maps = content_of("/proc/self/maps"));

}  // namespace tutti
