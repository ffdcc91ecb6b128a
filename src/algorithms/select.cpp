// Which algorithm a call uses: a short table of the fastest ones, and the user's setting.
#include "algorithms/select.h"

#include <cassert>

#include "algorithms/rank_plan.h"
#include "algorithms/setting.h"

namespace tutti {
namespace {

constexpr std::size_t kib = 1024;
constexpr int pairs_max = 32;  // up to this many ranks, every rank has slots to every other

/// Where some ranks are nearer to each other, as on several hosts, large calls send each byte between groups once, and
/// not once for each rank of a group.
bool keeps_near(const Shape& shape, std::size_t bytes) {
  constexpr std::size_t small = 32 * kib;
  return bytes > small && !shape.levels.empty() && member(algorithm::hierarchical).supports(shape);
}

/// Slots: few steps for small calls, few bytes and passes for large ones.
const Family& for_fifo(const Shape& shape, std::size_t bytes) {
  const bool all_pairs = shape.ranks <= pairs_max;
  if (keeps_near(shape, bytes)) return algorithm::hierarchical;
  switch (shape.collective) {
    case Collective::all_reduce:
      if (bytes <= 8 * kib) return algorithm::recursive_doubling;
      if (all_pairs) return algorithm::two_shot;
      return bytes <= 1024 * kib ? algorithm::circulant : algorithm::ring;
    case Collective::all_gather:
    case Collective::reduce_scatter:
      if (all_pairs && bytes > 32 * kib) return algorithm::one_shot;
      return bytes <= 1024 * kib ? algorithm::circulant : algorithm::ring;
    case Collective::broadcast:
    case Collective::reduce:
      return all_pairs && shape.ranks > 2 && bytes > 32 * kib ? algorithm::two_shot : algorithm::binomial;
    case Collective::gather:
    case Collective::scatter: return all_pairs && bytes > 32 * kib ? algorithm::one_shot : algorithm::binomial;
    case Collective::all_to_all: return all_pairs && bytes <= 32 * kib ? algorithm::one_shot : algorithm::pairwise;
    case Collective::barrier: return algorithm::dissemination;
  }
  return algorithm::one_shot;
}

/// Peers' memory is accessible: every rank needs one pass and no intermediate copy.
const Family& for_windows(const Shape& shape, Access access) {
  switch (shape.collective) {
    case Collective::all_reduce: return algorithm::two_shot;
    case Collective::broadcast:
    case Collective::reduce: return access == Access::mapped ? algorithm::two_shot : algorithm::one_shot;
    default: return algorithm::one_shot;
  }
}

const Family& fastest(const Shape& shape, Access access, std::size_t bytes) {
  if (shape.ranks == 1) return algorithm::local;
  switch (access) {
    case Access::in_line: return algorithm::one_shot;
    case Access::mapped:
    case Access::cma: return for_windows(shape, access);
    case Access::slots: return for_fifo(shape, bytes);
  }
  return algorithm::one_shot;
}

bool serves_counts(const Algorithm& algorithm, const Shape& shape, Access access) {
  if (!serves(algorithm, shape, access)) return false;
  return is_direct(algorithm, shape) || (access == Access::slots && keeps_groups(algorithm, shape));
}

/// Without a message to ranks that get nothing; but slots to all other ranks are too many if there are many ranks.
const Family& fastest_for_counts(const Shape& shape, Access access, std::size_t bytes) {
  if (shape.ranks == 1) return algorithm::local;
  const bool all_pairs = shape.ranks <= pairs_max;
  if (access == Access::slots && shape.collective == Collective::all_gather && !all_pairs) return algorithm::ring;
  if (access == Access::slots && shape.collective == Collective::all_to_all && !(all_pairs && bytes <= 32 * kib))
    return algorithm::pairwise;
  return algorithm::one_shot;
}

/// The best one, or the first that serves if the setting excludes the best.
template <class Serves>
const Algorithm* wanted(const Algorithm& best, Collective collective, std::string_view forced, const Serves& serves) {
  if (forced.empty()) return &best;
  const AlgorithmFilter filter(forced, collective);
  if (filter.allows(best)) return &best;
  for (const Algorithm& other : algorithms())
    if (filter.allows(other) && serves(other)) return &other;
  return &best;
}

}  // namespace

const Algorithm* select(const Shape& shape, Access access, std::size_t bytes, std::string_view forced) {
  const Algorithm& best = member(fastest(shape, access, bytes));
  assert(serves(best, shape, access));
  return wanted(best, shape.collective, forced, [&](const Algorithm& other) { return serves(other, shape, access); });
}

const Algorithm* select_for_counts(const Shape& shape, Access access, std::size_t bytes, std::string_view forced) {
  const Algorithm& best = member(fastest_for_counts(shape, access, bytes));
  assert(serves(best, shape, access));
  return wanted(best, shape.collective, forced,
                [&](const Algorithm& other) { return serves_counts(other, shape, access); });
}

std::vector<const Algorithm*> candidates(const Shape& shape, Access access, std::string_view forced) {
  std::vector<const Algorithm*> all;
  const AlgorithmFilter filter(forced, shape.collective);
  for (const Algorithm& algorithm : algorithms())
    if (serves(algorithm, shape, access) && filter.allows(algorithm)) all.push_back(&algorithm);
  return all;
}

}  // namespace tutti
