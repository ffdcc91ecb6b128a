// How many channels have to be resident at once, from who waits for whom.
#pragma once

#include <vector>

#include "plan/types.h"

namespace tutti::proof {

/// Of the ranks of one channel: [rank · ranks + peer] is set where `rank` does something that comes after something of
/// `peer`.
using Waits = std::vector<char>;

/// Channels of one index that can wait at once for others which are not resident: never less than there can be.
///
/// Once all but the ranks of a set U are resident, exactly those wait for ever that wait for a rank of U. Whoever is
/// neither in U nor waits for it may be added to U, so all of a U that holds up most are in it or wait for it, and the
/// others are ranks less its size. Of ranks that share nobody, themselves included, for whom they wait, each has a
/// member of U of its own: as many as are found so, U has at least.
int blocked_max(const Waits& waits, int ranks);

}  // namespace tutti::proof
