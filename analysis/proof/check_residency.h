// The number of channels that have to be resident at once, derived from the waits between ranks.
#pragma once

#include <vector>

#include "plan/types.h"

namespace tutti::proof {

/// The waits between the ranks of one channel: [rank · ranks + peer] is set if an action of `rank` comes after an
/// action of `peer`.
using Waits = std::vector<char>;

/// An upper bound of the channels with one index that can wait at the same time for channels that are not resident.
///
/// Suppose that all ranks except those of a set U are resident. Then exactly the ranks that wait for a rank of U wait
/// forever. A rank that is neither in U nor waits for U may be added to U. So for a U that blocks the most ranks, every
/// rank is in U or waits for U, and the number of blocked ranks is ranks − |U|. Now take ranks whose sets, the rank
/// itself and all ranks it waits for, have no member in common: each set contains a different member of U. So |U| is at
/// least the number of such ranks that are found.
int blocked_max(const Waits& waits, int ranks);

}  // namespace tutti::proof
