// Calls with a count per rank: where this rank's groups lie, and the counts that ranks publish.
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

/// The ranges that a rank exchanges with one peer, in elements from the start of its buffers. Published in shared
/// memory, one per peer: see RankArea::shares.
struct Share {
  Range sent;
  Range received;
};
static_assert(sizeof(Share) == 32 && std::is_trivially_copyable_v<Share>);

struct Layout {
  std::vector<Range> input;  ///< by group; the request's buffer begins at the lowest non-empty group
  std::vector<Range> output;
  std::size_t input_elements = 0;  ///< from the start of the buffer to the end of its last group
  std::size_t output_elements = 0;
  CountsDescriptor line;  ///< published in the call descriptor
};

/// The user's arguments for one buffer: a count per group and the start of each group. Displacements of nullptr: the
/// groups lie one after another.
struct Counts {
  const std::size_t* counts = nullptr;
  const std::size_t* displacements = nullptr;
};

/// Checks the buffers and counts of `request` on `rank` and gives it a layout; moves the request's buffers to the start
/// of the layout. Ignores the arguments for a buffer that the rank does not use. Errors: invalid_argument (counts or a
/// needed buffer are NULL; counts exceed the address space; the rank's counts for sending to and receiving from itself
/// differ; output groups overlap each other, or overlap the input other than in place).
Result<void> lay_out(Request& request, Rank rank, int ranks, const Counts& send, const Counts& recv);

/// The ranges that `rank` exchanges with `peer` in a call with this layout.
Share share_with(const Request& request, const Layout& layout, Rank peer);

/// Sums up the counts in all call descriptors of one call.
class CountsTally {
 public:
  /// `line`: a CountsDescriptor as a rank has published or sent it, perhaps not aligned.
  void add(const std::byte* line);
  /// True if every rank receives the counts that its peers send to it. Wrong with a chance of 2^-64.
  bool balanced() const { return sent_ == received_; }
  /// The largest number of elements, of `element` bytes each, that one rank sends to another. Errors: remote (exceeds
  /// the address space).
  Result<std::size_t> largest(std::size_t element) const;

 private:
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::size_t largest_ = 0;
};

/// An invalid_usage error that names the pairs of ranks that disagree, from the shares that every rank published.
Error counts_mismatch(std::span<const std::span<const Share>> shares_of, const Request& request);

}  // namespace tutti
