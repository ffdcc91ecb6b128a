// Errors that describe how the calls of ranks differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/call_descriptor.h"

namespace tutti {

/// For example "AllReduce count=8 float32 sum". Invalid values, which may come from a peer, are printed as numbers.
std::string call_text(const Signature& call);

/// The report of a mismatch at call `sequence`: lists every rank's call as far as known, with equal calls in one row.
/// Rank `by.rank` reports it in its call number `by.in_call`; if that is call `sequence`, the rank has written nothing
/// yet. Returns `error` if the known calls do not differ.
struct Reporter {
  int rank = 0;
  std::uint64_t in_call = 0;
};
Error mismatch_report(const std::vector<std::optional<Signature>>& calls, std::uint64_t sequence, Reporter by,
                      Error error);

/// A mismatch between the calls of two ranks, when data may have moved already.
struct MadeCall {
  int rank = 0;
  std::uint64_t sequence = 0;
  Signature signature;
};
Error differing_calls(const MadeCall& own, const MadeCall& theirs);

/// A mismatch of which only the interval is known: the calls of two ranks differ somewhere after call `after`, up to
/// call `until`.
Error differing_between(int own, int theirs, std::uint64_t after, std::uint64_t until);

/// The rank that `who` describes left the communicator. `last` is its last call (number 0: none). `own` is a call of
/// this rank that it never made.
Error left_before(const std::string& who, const MadeCall& last, const MadeCall& own);

/// This rank leaves after its last call `own` (number 0: none), but a peer has made the later call `theirs`.
Error more_calls(const MadeCall& own, const MadeCall& theirs);

}  // namespace tutti
