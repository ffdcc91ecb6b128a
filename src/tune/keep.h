// The file that keeps measurements for the next process on the same machine.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/machine.h"
#include "base/error.h"

namespace tutti {

/// The conditions under which a measurement is valid: processor, number of cores, kernel and library version, in one
/// line.
std::string fingerprint(int cores, int library_version);

/// The path of the file in `folder`; its name is the fingerprint's hash.
std::string machine_file(const std::string& folder, std::string_view fingerprint);

/// The text has a line for the format, one for the fingerprint and one for each number.
std::string to_text(const Machine& machine, std::string_view fingerprint);
/// Errors: invalid_argument: another format or fingerprint, a damaged text, or numbers that no machine has.
Result<Machine> from_text(std::string_view text, std::string_view fingerprint);

}  // namespace tutti
