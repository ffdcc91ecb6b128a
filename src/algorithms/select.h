// Which algorithm a call uses, by its access.
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
/// skipped. Never null: every collective has an algorithm for every number of ranks and every access, with a schedule
/// that lowers to the access. Builds no schedule and does not know the machine: a table of algorithms that were the
/// fastest on some machine, for callers without better information.
const Algorithm* select(const Shape& shape, Access access, std::size_t bytes, std::string_view forced);

/// As select, for calls whose groups differ in size; `bytes`: of the largest group. Only algorithms whose schedules are
/// `direct` (plan/counts.h), or, for an all-gather through slots, where all ranks know all counts, those that
/// `keep_groups`. Builds schedules if `forced` is not empty.
const Algorithm* select_for_counts(const Shape& shape, Access access, std::size_t bytes, std::string_view forced);

/// All algorithms that can serve such calls and that `forced` allows, in the order of the registry; empty if there is
/// none.
std::vector<const Algorithm*> candidates(const Shape& shape, Access access, std::string_view forced);

/// Entries are separated by ";", each [collective:][^]name[,name]…: only these algorithms, or with ^ all but these. An
/// entry without a collective applies to all collectives without an entry of their own. Case and underscores are
/// ignored; "tree" is "binomial". Errors: invalid_argument (names the unknown word and the nearest known one).
Result<void> check_algo_setting(std::string_view forced);

}  // namespace tutti
