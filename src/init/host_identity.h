// Which processes are on one host, in the sense of shared memory.
#pragma once

#include <string>

#include "base/config.h"

namespace tutti {

/// Equal in processes that can pass each other descriptors: processes on one kernel (boot id) and in one network
/// namespace, which bounds the names of abstract unix sockets. TUTTI_HOSTID replaces it if set.
std::string host_identity(const Config& config);

/// Equal in processes of one user in one user namespace. Processes where it differs may or may not be of one user to
/// the kernel; descriptors are passed only where both ends see the same user.
std::string user_identity();

}  // namespace tutti
