// A machine as ranks of different hosts tell each other of it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "place/locator.h"

namespace tutti {

/// Equal on machines that are alike: without what only this process sees (the CPUs that it may use), what changes from
/// hour to hour (a link that sleeps), and what names a single machine.
std::string machine_text(const topology::Topology& machine);

/// Errors: remote (the text is not a machine).
Result<SharedMachine> read_machine_text(std::string_view text);

}  // namespace tutti
