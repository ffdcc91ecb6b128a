// Which algorithm a call uses, and how ranks reach each other in it.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "plan/plan.h"

namespace tutti {

/// The algorithm for a call of `bytes` (the largest buffer of one rank) at this shape and reach. `forced` is
/// TUTTI_ALGO's value ("allreduce:ring;broadcast:^tree", or one name for all); a name that cannot serve the shape is
/// passed over. Never null: every collective has an algorithm for every number of ranks and every reach it can be
/// given; and always one whose schedule lowers to the reach. Builds no schedule.
const Algorithm* select(const Shape& shape, Reach reach, std::size_t bytes, std::string_view forced);

/// The same for calls whose groups differ in size, `bytes`: of the largest group. Only algorithms whose schedules are
/// `direct` (plan/counts.h), or of an all-gather through slots, whose counts all ranks know, those that `keep_groups`.
/// Builds schedules where `forced` says something.
const Algorithm* select_for_counts(const Shape& shape, Reach reach, std::size_t bytes, std::string_view forced);

/// Entries are separated by ";", each [collective:][^]name[,name]…: only those algorithms, or with ^ all but those. An
/// entry without a collective is for all that have none of their own. Case and underscores do not matter; "tree" is
/// "binomial". Errors: invalid_argument, naming the word that is not known and the nearest one that is.
Result<void> check_algo_setting(std::string_view forced);

}  // namespace tutti
