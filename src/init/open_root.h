// Makes this process the meeting point of a communicator to be.
#pragma once

#include "net/unique_id.h"
#include "process/process.h"

namespace tutti {

/// Listens on `at` (port 0: any free one) for ranks that know `secret`; served by the service thread until all ranks
/// are done or TUTTI_INIT_TIMEOUT_MS passed. `advice`: of BootstrapRoot. Errors: system (address in use, no
/// descriptor).
Result<UniqueId> open_root(Process& process, const SocketAddress& at, const Secret& secret,
                           const std::string& advice = {});

/// The same on any port with a fresh secret: on the interfaces that are chosen for this process, or where all ranks are
/// known to be on this host, on loopback. Errors also: invalid_usage (no interface to use).
Result<UniqueId> open_root(Process& process, bool across_hosts = true, const std::string& advice = {});

/// Ends it; ranks that are on their way are told that the root was lost. Errors: invalid_argument (none of this
/// process, or all its ranks have met).
Result<void> close_root(Process& process, const UniqueId& id);

}  // namespace tutti
