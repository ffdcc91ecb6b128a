// Which algorithm a call uses, and how ranks reach each other in it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "plan/plan.h"

namespace tutti {

/// The algorithm for a call of `bytes` (the largest buffer of one rank) at this shape and access. `forced` is
/// TUTTI_ALGO's value ("allreduce:ring;broadcast:^tree", or one name for all); a name that cannot serve the shape is
/// passed over. Never null: every collective has an algorithm for every number of ranks and every reach it can be
/// given; and always one whose schedule lowers to the access. Builds no schedule, and knows nothing of the machine: a
/// table of what was the fastest somewhere, for whoever has no better to go by.
const Algorithm* select(const Shape& shape, Access access, std::size_t bytes, std::string_view forced);

/// The same for calls whose groups differ in size, `bytes`: of the largest group. Only algorithms whose schedules are
/// `direct` (plan/counts.h), or of an all-gather through slots, whose counts all ranks know, those that `keep_groups`.
/// Builds schedules where `forced` says something.
const Algorithm* select_for_counts(const Shape& shape, Access access, std::size_t bytes, std::string_view forced);

/// All that may serve such calls and that `forced` allows, in the order of the registry; empty where it allows none
/// that can.
std::vector<const Algorithm*> candidates(const Shape& shape, Access access, std::string_view forced);

/// Entries are separated by ";", each [collective:][^]name[,name]…: only those algorithms, or with ^ all but those. An
/// entry without a collective is for all that have none of their own. Case and underscores do not matter; "tree" is
/// "binomial". Errors: invalid_argument, naming the word that is not known and the nearest one that is.
Result<void> check_algo_setting(std::string_view forced);

}  // namespace tutti
