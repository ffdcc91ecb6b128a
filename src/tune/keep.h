// The file of a machine's numbers: kept for the next process on the same machine, or written by hand.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/machine.h"
#include "base/error.h"

namespace tutti {

/// Processor, number of cores and kernel.
std::string machine_name(int cores);

/// The conditions under which a measurement is valid: processor, number of cores, kernel and library version, in one
/// line.
std::string fingerprint(int cores, int library_version);

/// The path of the nth file in `folder`; its name is the fingerprint's hash.
std::string machine_file(const std::string& folder, std::string_view fingerprint, int nth);

/// The text has a line for the format, "for" and the fingerprint, "measured" and the time, and a line "name value" for
/// each number.
std::string to_text(const Machine& machine, std::string_view fingerprint);
/// Errors: invalid_argument: another format or fingerprint, a damaged text, a number that is missing, or numbers that
/// no machine has.
Result<Machine> from_text(std::string_view text, std::string_view fingerprint);

/// The numbers of TUTTI_MACHINE_FILE, in the same format: whatever machine it is for, empty lines and lines that begin
/// with # are skipped, and numbers that it does not name are the built-in ones. Errors: invalid_argument (names file
/// and line), system (it cannot be read).
Result<Machine> read_machine_file(const std::string& path);

}  // namespace tutti
