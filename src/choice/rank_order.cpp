// Determines from their schedules which algorithms reduce in rank order.
#include "choice/rank_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "choice/setting.h"
#include "plan/verify.h"

namespace tutti {
namespace {

constexpr int ranks_in_full = 32;

/// For many ranks, an algorithm does as with fewer: with a power of two, and with a number that is none. Building the
/// schedules of all ranks would take too long.
bool is_member(const Algorithm& algorithm, Collective collective, int ranks) {
  constexpr int no_power = 27;
  Shape shape{.collective = collective, .ranks = ranks};
  if (!algorithm.supports(shape)) return false;
  if (ranks > ranks_in_full)
    return is_member(algorithm, collective, ranks_in_full) && is_member(algorithm, collective, no_power);
  for (shape.root = 0; shape.root < (rooted(collective) ? ranks : 1); ++shape.root)
    if (const auto meaning = verify(algorithm.build(shape)); !meaning || !meaning->rank_order) return false;
  return true;
}

}  // namespace

std::span<const Algorithm* const> RankOrder::members(Collective collective) {
  auto& known = members_[static_cast<std::size_t>(collective)];
  if (!known) {
    known.emplace();
    for (const Algorithm& algorithm : algorithms())
      if (is_member(algorithm, collective, ranks_)) known->push_back(&algorithm);
  }
  return *known;
}

std::string RankOrder::filter(Collective collective, Access access, std::string_view forced) {
  const AlgorithmFilter wanted(forced, collective);
  std::vector<std::string_view> all, allowed;
  for (const Algorithm* member : members(collective)) {
    if (!serves(*member, {.collective = collective, .ranks = ranks_}, access)) continue;
    all.push_back(member->name);
    if (wanted.allows(*member)) allowed.push_back(member->name);
  }
  return joined(allowed.empty() ? all : allowed, ",");
}

Result<void> RankOrder::check(std::string_view forced) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::scan, Collective::ex_scan})
    for (const std::string_view word : AlgorithmFilter(forced, collective).wanted()) {
      const auto named = [word](const Algorithm& algorithm) { return names(word, algorithm); };
      const bool can = std::ranges::any_of(algorithms(), [&](const Algorithm& algorithm) {
        return named(algorithm) && algorithm.supports({.collective = collective, .ranks = ranks_});
      });
      const auto ordered = members(collective);
      if (!can || std::ranges::any_of(ordered, [&](const Algorithm* member) { return named(*member); })) continue;
      std::string others;
      for (const Algorithm* member : ordered) others += (others.empty() ? "" : ", ") + member->name;
      return Error{
          .code = Code::invalid_usage,
          .what = fmt::format("TUTTI_ALGO asks for {}, which does not sum up in the order of ranks in {} of {} "
                              "ranks, as a deterministic communicator does; those that do: {}",
                              word, name(collective), ranks_, others)};
    }
  return {};
}

}  // namespace tutti
