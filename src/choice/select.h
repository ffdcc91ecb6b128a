// Which algorithms a call may use, by its access and the user's setting.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "plan/plan.h"

namespace tutti {

/// Up to this many ranks an algorithm may build the schedule of all of them to make a prediction.
inline constexpr int whole_ranks_max = 64;
/// Up to this many ranks all members of a family are candidates.
inline constexpr int members_ranks_max = 1024;

/// The algorithms that can serve calls of this shape and access and that `forced` allows, in the order of the registry.
/// `forced` is TUTTI_ALGO's value ("allreduce:ring;broadcast:^tree", or one name for all); names that cannot serve the
/// shape are skipped. Never empty: every collective has an algorithm for every number of ranks and every access. For
/// many ranks, only those whose prediction costs little, if there are any. `counts`: for calls whose groups differ in
/// size, algorithms whose schedules are `direct` (plan/counts.h), or, for an all-gather through slots, where all ranks
/// know all counts, those that `keep_groups`.
std::vector<const Algorithm*> candidates(const Shape& shape, Access access, std::string_view forced,
                                         bool counts = false);

/// Entries are separated by ";", each [collective:][^]name[,name]…: only these algorithms, or with ^ all but these. An
/// entry without a collective applies to all collectives without an entry of their own. Case and underscores are
/// ignored; "tree" is "binomial". Errors: invalid_argument (names the unknown word and the nearest known one).
Result<void> check_algo_setting(std::string_view forced);

}  // namespace tutti
