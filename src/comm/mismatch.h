// Says in words how ranks' calls differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/call_line.h"

namespace tutti {

/// "AllReduce count=8 float32 sum"; values a peer made up are printed as numbers.
std::string call_text(const Signature& call);

/// The report of a mismatch at call `sequence`: every rank's call as far as known, equal ones together.
/// The buffers are as they were.
Error mismatch_report(const std::vector<std::optional<Signature>>& calls, std::uint64_t sequence, Error error);

/// The same of the two ranks of one connection, where data may have moved already.
struct MadeCall {
  int rank = 0;
  std::uint64_t sequence = 0;
  Signature signature;
};
Error differing_calls(const MadeCall& own, const MadeCall& theirs);

}  // namespace tutti
