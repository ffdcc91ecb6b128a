#include "transport/free_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>

namespace tutti {
namespace {

std::optional<std::size_t> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;  // "max": no limit
  return value;
}

/// The number after `key` at the beginning of a line.
std::optional<std::size_t> number_after(const std::string& text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, key.size(), key) == 0) return number(std::string_view(text).substr(at + key.size()));
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return std::nullopt;
}

void lower_to(std::optional<FreeMemory>& room, std::size_t bytes, std::string limit) {
  if (!room || bytes < room->bytes) room = FreeMemory{.bytes = bytes, .limit = std::move(limit)};
}

void consider_host(std::optional<FreeMemory>& room, const FileContent& content) {
  const std::string text = content("/proc/meminfo");
  const auto available = number_after(text, "MemAvailable:");
  if (!available) return;
  const std::size_t swap = number_after(text, "SwapFree:").value_or(0);
  lower_to(room, (*available + swap) * 1024, "/proc/meminfo MemAvailable and SwapFree");
}

struct Names {
  const char* limit;
  const char* usage;
  const char* cache;  // key in memory.stat: memory that the kernel drops before it refuses an allocation
};

/// Considers a control group and all groups above it: each may set a limit.
void consider_groups(std::optional<FreeMemory>& room, const FileContent& content, const std::string& root,
                     std::string group, const Names& names) {
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    const std::string at = root + group + "/";
    const auto limit = number(content(at + names.limit));
    const auto usage = number(content(at + names.usage));
    if (limit && usage) {
      const std::size_t cache = number_after(content(at + "memory.stat"), names.cache).value_or(0);
      const std::size_t used = *usage > cache ? *usage - cache : 0;
      lower_to(room, *limit > used ? *limit - used : 0, at + names.limit);
    }
    if (group.empty()) return;
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::optional<FreeMemory> free_memory(const FileContent& content) {
  std::optional<FreeMemory> room;
  consider_host(room, content);
  const std::string groups = content("/proc/self/cgroup");
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);  // "4:memory:/job" or, version 2, "0::/job"
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (kinds.empty())
      consider_groups(room, content, "/sys/fs/cgroup", group, {"memory.max", "memory.current", "inactive_file "});
    if (kinds == "memory")
      consider_groups(room, content, "/sys/fs/cgroup/memory", group,
                      {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "});
  }
  return room;
}

/// Each line: "begin-end rwxp offset device inode name", by address.
bool is_private_anonymous(std::span<const std::byte> memory, std::string_view maps) {
  auto next = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = next + memory.size();
  while (!maps.empty() && next < end) {
    const std::string line(maps.substr(0, maps.find('\n')));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    unsigned long first = 0, last = 0, inode = 0;
    char rights[5] = {};
    int named = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu %n", &first, &last, rights, &inode, &named) != 4)
      return false;
    if (last <= next) continue;
    const std::string_view name = std::string_view(line).substr(static_cast<std::size_t>(named));
    if (first > next || std::string_view(rights).substr(0, 2) != "rw" || rights[3] != 'p' || inode != 0 ||
        name.starts_with("[stack"))
      return false;
    next = last;
  }
  return next >= end;
}

}  // namespace tutti
