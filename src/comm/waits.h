// Whom ranks wait for, as they tell one another: so that a call that ends at its limit names the rank that holds up
// all others, and not one that waits itself.
#pragma once

#include <cstdint>
#include <string>

#include "plan/types.h"

namespace tutti {

class Communicator;

/// Of a call that waits for whichever rank comes first.
inline constexpr Rank any_rank = -2;

/// What AreaHeader::waits holds: one of these, or `for_rank`.
namespace waits {
inline constexpr std::uint32_t for_nobody = 0;  ///< in no call, or in one that has moved within the last millisecond
inline constexpr std::uint32_t unknown = 1;     ///< in a call that cannot say; or nothing has been heard of the rank
inline constexpr std::uint32_t for_any_rank = 2;
constexpr std::uint32_t for_rank(Rank rank) {
  if (rank == any_rank) return for_any_rank;
  return rank < 0 ? unknown : static_cast<std::uint32_t>(rank) + 3;
}
}  // namespace waits

/// Who is at the end of a chain of ranks that wait for each other.
struct Holdup {
  Rank rank = -1;          ///< −1: none is known
  std::string words = {};  ///< "; rank 2 waits for rank 1, rank 1 waits in no call of this communicator"; may be empty
};

/// What keeps `rank` from going on, for which this rank waits (negative: any, or it does not know): what the ranks of
/// this host show in their areas, and what control neighbours have told a tenth of a second ago.
Holdup held_up_by(const Communicator& communicator, Rank rank);

}  // namespace tutti
