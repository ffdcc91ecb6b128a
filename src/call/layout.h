// Calls with a count per rank: where this rank's groups lie, and what ranks tell each other about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "call/request.h"
#include "plan/plan.h"

namespace tutti {

/// What a rank exchanges with one peer, in elements from the start of its buffers. In shared memory, one per peer: see
/// RankArea::shares.
struct Share {
  Range sent;
  Range received;
};
static_assert(sizeof(Share) == 32 && std::is_trivially_copyable_v<Share>);

struct Layout {
  std::vector<Range> input;  ///< by group; the buffer of the request begins at the lowest one that is not empty
  std::vector<Range> output;
  std::size_t input_elements = 0;  ///< from the beginning of the buffer to the end of its last group
  std::size_t output_elements = 0;
  CountsDescriptor line;  ///< what the call descriptor says
};

/// The user's arguments for one buffer: a count per group, and where each group begins, or nullptr: one after another.
struct Counts {
  const std::size_t* counts = nullptr;
  const std::size_t* displacements = nullptr;
};

/// Checks the buffers and counts of `request` on `rank` and gives it a layout; its buffers then begin where the layout
/// says. What a rank has no buffer for is not looked at. Errors: invalid_argument (counts or a needed buffer are NULL;
/// more memory than there is; what the rank sends to itself is not what it receives from itself; output groups that
/// overlap each other, or the input other than in place).
Result<void> lay_out(Request& request, Rank rank, int ranks, const Counts& send, const Counts& recv);

/// What `rank` exchanges with `peer` in a call of that layout.
Share share_with(const Request& request, const Layout& layout, Rank rank, Rank peer);

/// What all call descriptors of one call say together.
class CountsTally {
 public:
  void add(const CountsDescriptor& line);
  /// Every rank receives what the others send to it, but for a chance of 2^-64.
  bool balanced() const { return sent_ == received_; }
  /// The largest number of elements that one rank sends another, of `element` bytes each. Errors: remote (more than
  /// there is memory).
  Result<std::size_t> largest(std::size_t element) const;

 private:
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::size_t largest_ = 0;
};

/// The pairs of ranks that disagree, from the shares that every rank published; words for an invalid_usage.
Error counts_mismatch(std::span<const std::span<const Share>> shares_of, const Request& request);

}  // namespace tutti
