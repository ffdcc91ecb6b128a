// Which algorithms reduce in the order of ranks: those a deterministic communicator chooses from.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"

namespace tutti {

/// The bits of a reduction are those of its tree of passes. Of the trees there are for a number of ranks, this is the
/// class of one: all inputs in the order of ranks, in one pass, or a chain of passes where there are more than
/// limits::sources_max, for every element, rank and root. one_shot and two_shot are always in it; for few ranks there
/// are more.
class RankOrder {
 public:
  explicit RankOrder(int ranks) : ranks_(ranks) {}

  /// In the order of the registry; proven from their schedules when asked first. For collectives that reduce.
  std::span<const Algorithm* const> members(Collective collective);

  /// What to tell `select` instead of `forced`, in the words of TUTTI_ALGO: the members that serve `access`, without
  /// those that `forced` does not want where others are left.
  std::string filter(Collective collective, Access access, std::string_view forced);

  /// Errors: invalid_usage, where `forced` asks for an algorithm that can serve so many ranks and is no member.
  Result<void> check(std::string_view forced);

 private:
  int ranks_;
  std::array<std::optional<std::vector<const Algorithm*>>, collective_count> members_;
};

}  // namespace tutti
