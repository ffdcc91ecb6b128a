// A file that keeps what was measured, for the next process on the same machine.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/machine.h"
#include "base/error.h"

namespace tutti {

/// What a measurement is good for: processor, number of cores, kernel and version of the library, in one line.
std::string fingerprint(int cores, int library_version);

/// Where it lies in `folder`: a name of the fingerprint's hash.
std::string machine_file(const std::string& folder, std::string_view fingerprint);

/// Text with a line for the format, one for the fingerprint and one for each number.
std::string to_text(const Machine& machine, std::string_view fingerprint);
/// Errors: invalid_argument, for a text of another format or fingerprint, damaged, or with numbers of no machine.
Result<Machine> from_text(std::string_view text, std::string_view fingerprint);

}  // namespace tutti
