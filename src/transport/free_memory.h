// What the kernel says of memory: how much this process may still take before an allocation is refused or a process
// killed, and whether memory belongs to this process alone.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// Whether all of `memory` is private, anonymous and writable, as from malloc: no file, no shared memory, no stack, no
/// huge pages of hugetlbfs. `maps`: the text of /proc/PID/maps.
bool is_private_anonymous(std::span<const std::byte> memory, std::string_view maps);

/// Reads this process's maps; false if that is impossible.
bool is_private_anonymous(std::span<const std::byte> memory);

}  // namespace tutti
