// How ranks started by a launcher get one common id.
#pragma once

#include <cstdint>
#include <functional>

#include "launch/key_value_space.h"
#include "launch/launch_env.h"
#include "net/unique_id.h"
#include "process/process.h"

namespace tutti {

struct Meeting {
  int rank = 0;
  int ranks = 1;
  UniqueId id;
};

/// All ranks of the job must call it, equally often. Uses the first of these ways that is available:
///   TUTTI_COMM_ID and TUTTI_COMM_SECRET (or _FILE): rank 0 listens there, all ranks derive the id from the secret;
///   the launcher's key-value space: rank 0 puts the id there;
///   the secret, and an address that the launcher gave;
///   an abstract unix socket of this host on which rank 0 gives the id to processes of its user.
/// Waits until `deadline_ns` at most. Errors: timeout, remote, system, invalid_argument, invalid_usage (several hosts,
/// and no way available).
Result<Meeting> meet(Process& process, const LaunchInfo& launch, std::int64_t deadline_ns);

/// Rank 0 makes the id and puts it there, or the reason why it could not; the other ranks get it. `nth`: number of the
/// id among those that this job shares.
Result<UniqueId> meet_in_space(KeyValueSpace& space, int rank, int nth, std::int64_t deadline_ns,
                               const std::function<Result<UniqueId>()>& make);

/// Rank 0 makes the id and serves it from the service thread, or the reason why it could not; the other ranks ask for
/// it.
Result<UniqueId> meet_on_host(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns);

/// For a rank that cannot take part and has not met the others: meets them as it would otherwise, and tells them why.
/// Where it has to find rank 0, it looks for two seconds at most; telling is limited as in refuse_start.
void refuse_at_meeting(Process& process, const LaunchInfo& launch, const Error& why, std::int64_t deadline_ns);

}  // namespace tutti
