// tuttiScatterGather: which collective its lists of ranks amount to.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// The arguments. Every rank passes the same.
struct ScatterGather {
  std::span<const int> sources;
  std::span<const int> destinations;
  std::size_t unit = 0;   ///< elements that one destination receives from one source
  std::size_t total = 0;  ///< elements of one source
};

/// Errors: invalid_argument (a rank that is none or is listed twice, an empty list, a unit that does not divide the
/// total).
Result<void> check_lists(const ScatterGather& call, int ranks);

/// The collective that does the same, with its count and root: of broadcasts, scatters, gathers, all-gathers and
/// all-to-alls in which all ranks take part in order.
struct Amounts {
  Collective collective = Collective::all_to_all;
  std::size_t count = 0;
  Rank root = 0;
};
std::optional<Amounts> amounts_to(const ScatterGather& call, int ranks);

/// What is sent to and received from each rank, for those that are no such case.
struct Exchanged {
  std::vector<std::size_t> send_counts, send_at, recv_counts, recv_at;
};
Exchanged exchanged(const ScatterGather& call, Rank rank, int ranks);

/// Tells lists and totals apart.
std::uint32_t fingerprint(const ScatterGather& call);

}  // namespace tutti
