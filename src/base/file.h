// Whole files of a modest size: read at once, written at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tutti {

/// Larger files are refused before memory is spent on them.
inline constexpr std::size_t file_bytes_max = std::size_t{16} << 20;

enum class FileKind {
  any,      ///< also pipes, devices and files of /sys: reading may wait for a writer
  regular,  ///< only regular files and /dev/null: a pipe of that name cannot block the reader
};

/// Errors: system (sys_errno ENOENT: no such file), invalid_argument (a folder, too large, or of another kind).
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = file_bytes_max,
                              FileKind kind = FileKind::any);

/// Creates the file, or replaces its content. Errors: system.
Result<void> write_file(const std::string& path, std::string_view text);

/// Creates the folder and its parents if needed. A reader sees all of the text or none of it. A link placed at that
/// name is replaced, not followed. Errors: system.
Result<void> write_atomically(const std::string& path, std::string_view text);

}  // namespace tutti
