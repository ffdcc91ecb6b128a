// Whole files of a modest size: read at once, written at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

/// What is larger is refused before memory is spent on it.
inline constexpr std::size_t file_bytes_max = std::size_t{16} << 20;

enum class FileKind {
  any,      ///< also pipes, devices and files of /sys: reading may wait for who writes
  regular,  ///< nothing else but /dev/null: never held up by a pipe that somebody laid there
};

/// Errors: system (sys_errno ENOENT: there is none), invalid_argument (a folder, too large, of another kind).
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = file_bytes_max,
                              FileKind kind = FileKind::any);

/// Makes the file or replaces what is in it. Errors: system.
Result<void> write_file(const std::string& path, std::string_view text);

/// Makes the folder and its parents if need be; a reader sees all of the text or none of it, and a name that somebody
/// else laid there is replaced and not followed. Errors: system.
Result<void> write_atomically(const std::string& path, std::string_view text);

}  // namespace tutti
