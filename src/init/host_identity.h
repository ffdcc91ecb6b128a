// Which processes share a host, as far as shared memory goes.
#pragma once

#include <string>

#include "base/config.h"

namespace tutti {

/// Equal in processes that can hand each other descriptors: they run on one kernel (boot id) and in one network
/// namespace, where the names of abstract unix sockets end. TUTTI_HOSTID, where it is set, says it instead.
std::string host_identity(const Config& config);

/// Equal in processes of one user in one user namespace. Others may be the same user to the kernel, or not: descriptors
/// go from user to user only where both ends see the same one.
std::string user_identity();

}  // namespace tutti
