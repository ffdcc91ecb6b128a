// Whether memory belongs to this process alone.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tutti {

/// Whether all of `memory` is private, anonymous and writable, as from malloc: no file, no shared memory, no stack, no
/// huge pages of hugetlbfs. `maps`: the text of /proc/PID/maps.
bool is_private_anonymous(std::span<const std::byte> memory, std::string_view maps);

/// Reads this process's maps; false if that is impossible.
bool is_private_anonymous(std::span<const std::byte> memory);

}  // namespace tutti
