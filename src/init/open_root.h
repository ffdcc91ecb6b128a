// Makes this process the meeting point of a new communicator.
#pragma once

#include "net/unique_id.h"
#include "process/process.h"

namespace tutti {

/// Listens on `at` (port 0: any free one) for ranks that know `secret`. The service thread serves it until all ranks
/// are done or TUTTI_INIT_TIMEOUT_MS has passed. `advice`: see BootstrapRoot. `ranks`: if known. Errors: system
/// (address in use, no descriptor, no service thread; the last is told to ranks that call a given port within two
/// seconds).
Result<UniqueId> open_root(Process& process, const SocketAddress& at, const Secret& secret,
                           const std::string& advice = {}, int ranks = 1);

/// As above, on any port and with a new secret: on the interfaces that are chosen for this process, or on loopback if
/// all ranks are known to be on this host. Errors also: invalid_usage (no interface to use).
Result<UniqueId> open_root(Process& process, bool across_hosts = true, const std::string& advice = {});

/// Stops listening; ranks on their way get the error that the root was lost. Errors: invalid_argument (not a root of
/// this process, or all its ranks have met).
Result<void> close_root(Process& process, const UniqueId& id);

}  // namespace tutti
