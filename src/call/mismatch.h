// Says in words how ranks' calls differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/call_descriptor.h"

namespace tutti {

/// "AllReduce count=8 float32 sum"; values a peer made up are printed as numbers.
std::string call_text(const Signature& call);

/// The report of a mismatch at call `sequence`: every rank's call as far as known, equal ones together. `rank` is the
/// one that reports it, in its call number `in_call`: where that is the same call, it has written nothing yet.
struct Reporter {
  int rank = 0;
  std::uint64_t in_call = 0;
};
Error mismatch_report(const std::vector<std::optional<Signature>>& calls, std::uint64_t sequence, Reporter by,
                      Error error);

/// The same of two ranks, where data may have moved already.
struct MadeCall {
  int rank = 0;
  std::uint64_t sequence = 0;
  Signature signature;
};
Error differing_calls(const MadeCall& own, const MadeCall& theirs);

/// All that is known is that two ranks called something else between two of their calls.
Error differing_between(int own, int theirs, std::uint64_t after, std::uint64_t until);

/// A rank, as `who` describes it, left the communicator; `last` is its last call, or has the number 0. `own` is a call
/// that it never made.
Error left_before(const std::string& who, const MadeCall& last, const MadeCall& own);

/// A rank that leaves has made `own` as its last call (number 0: none), a peer has made `theirs` after that.
Error more_calls(const MadeCall& own, const MadeCall& theirs);

}  // namespace tutti
