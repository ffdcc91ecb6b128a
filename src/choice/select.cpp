// Which algorithms a call may use, by its access and the user's setting.
#include "choice/select.h"

#include "choice/rank_plan.h"
#include "choice/setting.h"

namespace tutti {
namespace {

bool serves_counts(const Algorithm& algorithm, const Shape& shape, Access access) {
  return is_direct(algorithm, shape) || (access == Access::slots && keeps_groups(algorithm, shape));
}

/// An algorithm that serves every shape: what is left where the setting leaves nothing.
const Algorithm& fallback(const Shape& shape, Access access) {
  if (shape.ranks == 1) return member(algorithm::local);
  if (shape.collective == Collective::barrier && access == Access::slots) return member(algorithm::dissemination);
  const bool windows = access == Access::mapped || access == Access::cma;
  if (windows && shape.collective == Collective::scan) return member(algorithm::chain);
  return member(windows && shape.collective == Collective::all_reduce ? algorithm::two_shot : algorithm::one_shot);
}

/// Whether an algorithm is worth a prediction. Of many ranks, algorithms that describe all ranks' work at once take too
/// long. Of very many ranks, the first member of a family stands for all; a rank does not hold connections to all
/// others where it need not; and it does not take over all data of another, as where their number is no power of two,
/// since circulant has as few steps and half of that in its largest message.
bool is_worth_it(const Algorithm& algorithm, const Shape& shape) {
  const Family& family = *algorithm.family;
  if (shape.ranks <= whole_ranks_max) return true;
  if (family.items == nullptr) return false;
  if (shape.ranks <= members_ranks_max) return true;
  const bool meets_all = &family == &algorithm::one_shot || &family == &algorithm::two_shot;
  if (meets_all && shape.collective != Collective::all_to_all) return false;
  const bool takes_over = reduces(shape.collective) && family.items(shape, algorithm.parameter) > shape.ranks / 2;
  return &algorithm == &member(family) && !takes_over;
}

}  // namespace

std::vector<const Algorithm*> candidates(const Shape& ranks, Access access, std::string_view forced, bool counts) {
  const Shape shape = positions_of(ranks);  // once, not for each algorithm
  std::vector<const Algorithm*> all, others;
  const AlgorithmFilter filter(forced, shape.collective);
  for (const Algorithm& algorithm : algorithms()) {
    if (!filter.allows(algorithm) || !serves(algorithm, shape, access)) continue;
    if (counts && !serves_counts(algorithm, shape, access)) continue;
    (is_worth_it(algorithm, shape) ? all : others).push_back(&algorithm);
  }
  if (all.empty() && !others.empty()) all = {others[0]};
  if (all.empty()) all = {&fallback(shape, access)};
  return all;
}

}  // namespace tutti
