// The file of a machine's numbers: kept for the next process on the same machine, or written by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "choice/machine.h"

namespace tutti {

/// Processor, number of cores and kernel.
std::string machine_name(int cores);

/// The conditions under which a measurement is valid: processor, number of cores, kernel and library version, in one
/// line.
std::string fingerprint(int cores, int library_version);

/// The path of the nth file in `folder`; its name is the fingerprint's hash.
std::string machine_file(const std::string& folder, std::string_view fingerprint, int nth);

/// The file that says when other work kept the numbers from being measured, and its text.
std::string tried_file(const std::string& folder, std::string_view fingerprint);
std::string tried_text(std::string_view fingerprint, std::int64_t now_s);
/// When that was (seconds since 1970); nothing if the text is of another fingerprint, or damaged.
std::optional<std::int64_t> tried_in(std::string_view text, std::string_view fingerprint);

/// Now.
std::int64_t seconds_since_1970();

/// What a file says.
struct MachineRecord {
  Machine machine;
  std::int64_t measured_s = 0;  ///< since 1970; 0: not known
  bool again = false;           ///< measured again, because calls had contradicted the numbers before
  std::string contradicted;     ///< when and by what; empty: not contradicted
};

/// The text has a line for the format, "for" and the fingerprint, "measured" or "measured again" and the time, and a
/// line "name value" for each number.
std::string to_text(const Machine& machine, std::string_view fingerprint, std::int64_t now_s, bool again = false);
/// `text`, with a line that says that calls contradict it: at `now_s`, by what was `seen`, which has no line breaks.
std::string with_contradiction(std::string_view text, std::int64_t now_s, std::string_view seen);
/// Errors: invalid_argument: another format or fingerprint, a damaged text, a number that is missing, or numbers that
/// no machine has.
Result<MachineRecord> from_text(std::string_view text, std::string_view fingerprint);

/// Whether calls may still contradict these numbers, so that they are measured again. Not within an hour of the
/// measurement, and not within a week if they were measured because of that already: then the prediction is at fault,
/// or the machine changes, and measuring at each start would not help.
bool may_be_contradicted(const MachineRecord& kept, std::int64_t now_s);

/// The numbers of TUTTI_MACHINE_FILE, in the same format: whatever machine it is for, empty lines and lines that begin
/// with # are skipped, and numbers that it does not name are the built-in ones. Errors: invalid_argument (names file
/// and line), system (it cannot be read).
Result<Machine> read_machine_file(const std::string& path);

}  // namespace tutti
