// The algorithms that reduce in rank order: a deterministic communicator chooses from these.
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

/// The bits of a reduction are determined by its tree of passes. This class stands for one of the possible trees: for
/// every element, rank and root, all inputs in rank order, in one pass, or in a chain of passes if there are more than
/// limits::sources_max. one_shot and two_shot are always members; for few ranks there are more. No member of a scan
/// serves windows, but of two ranks.
class RankOrder {
 public:
  explicit RankOrder(int ranks) : ranks_(ranks) {}

  /// In the order of the registry; found on first use by verifying their schedules. For collectives that reduce.
  std::span<const Algorithm* const> members(Collective collective);

  /// Replaces `forced` in calls of `select`, in the syntax of TUTTI_ALGO: the members that serve `access`, without
  /// those that `forced` excludes if others are left. Empty if no member serves it.
  std::string filter(Collective collective, Access access, std::string_view forced);

  /// Errors: invalid_usage, if `forced` asks for an algorithm that can serve this number of ranks but is not a member.
  Result<void> check(std::string_view forced);

 private:
  int ranks_;
  std::array<std::optional<std::vector<const Algorithm*>>, collective_count> members_;
};

}  // namespace tutti
