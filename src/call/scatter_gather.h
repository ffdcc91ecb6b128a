// tuttiScatterGather: finds the collective to which a call's lists of ranks are equivalent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// The arguments, which are the same on every rank.
struct ScatterGather {
  std::span<const int> sources;
  std::span<const int> destinations;
  std::size_t unit = 0;   ///< elements that one destination receives from one source
  std::size_t total = 0;  ///< elements of one source
};

/// Errors: invalid_argument (a rank out of range or listed twice, an empty list, a unit that does not divide the
/// total).
Result<void> check_lists(const ScatterGather& call, int ranks);

/// An equivalent collective, with its count and root: a broadcast, scatter, gather, all-gather or all-to-all in which
/// all ranks take part in order.
struct Amounts {
  Collective collective = Collective::all_to_all;
  std::size_t count = 0;
  Rank root = 0;
};
std::optional<Amounts> amounts_to(const ScatterGather& call, int ranks);

/// The elements sent to and received from each rank, for calls without an equivalent collective.
struct Exchanged {
  std::vector<std::size_t> send_counts, send_at, recv_counts, recv_at;
};
Exchanged exchanged(const ScatterGather& call, Rank rank, int ranks);

/// A hash of the lists and the total.
std::uint32_t fingerprint(const ScatterGather& call);

}  // namespace tutti
