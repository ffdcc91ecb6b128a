// Whole files of a modest size: read at once, written at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tutti {

/// Larger files are refused before memory is spent on them.
inline constexpr std::size_t file_bytes_max = std::size_t{16} << 20;

enum class FileKind {
  regular,  ///< only regular files, those of /proc and /sys too, and /dev/null: nothing of that name can make us wait
  stream,  ///< also pipes, terminals and devices, which may wait for their other end: for programs, where a person asks
};

/// Errors: system (sys_errno ENOENT: no such file), invalid_argument (a folder, too large, or of another kind).
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = file_bytes_max,
                              FileKind kind = FileKind::regular);

/// Of a file that may be missing, as those of /proc and /sys: "" where it cannot be read.
std::string content_of(const std::string& path);

/// Names in a folder but "." and those that begin with it, sorted; none where it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

/// Creates the file, or replaces its content. Errors: system, invalid_argument (of another kind).
Result<void> write_file(const std::string& path, std::string_view text, FileKind kind = FileKind::regular);

/// For those that open files by themselves. Success too where there is no file of that name. Errors: invalid_argument.
Result<void> refuse_irregular(const std::string& path);

/// Creates the folder and its parents if needed. A reader sees all of the text or none of it. A link placed at that
/// name is replaced, not followed. Errors: system.
Result<void> write_atomically(const std::string& path, std::string_view text);

}  // namespace tutti
