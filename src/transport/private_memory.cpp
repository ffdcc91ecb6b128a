#include "transport/private_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/file.h"

namespace tutti {

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

bool is_private_anonymous(std::span<const std::byte> memory) {
  const auto maps = read_file("/proc/self/maps");
  return maps && is_private_anonymous(memory, *maps);
}

}  // namespace tutti
