// The counts of a call with a count per rank when ranks share memory: published beside the call descriptors, compared
// by their sums, and looked up per pair of ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "call/layout.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

class PublishedCounts {
 public:
  /// Both must outlive this object. The request must have a layout.
  PublishedCounts(Communicator& communicator, const Request& request, std::uint64_t sequence)
      : communicator_(communicator), request_(request), sequence_(sequence) {}

  /// Writes the sums of this rank's counts into its descriptor, and beside the descriptor one share per peer: the data
  /// that this rank exchanges with the peer. So a reader needs only its own share.
  void publish(CallDescriptor& descriptor);
  /// Adds the sums of one rank.
  void add(const CallDescriptor& descriptor) { tally_.add(descriptor.small); }
  /// The largest count, once the sums of all ranks are added. All ranks get the same result, before any of them writes.
  /// Errors: invalid_usage (ranks disagree; the text names them), remote.
  Result<std::size_t> agree() const;

  /// A block in a buffer of a peer.
  struct Block {
    BufferDescriptor buffer;
    std::size_t bytes = 0;
  };
  /// The only block that this rank uses in the buffer of `rank` that `buffer` describes. Errors: remote (the counts
  /// that the rank published are invalid).
  Result<Block> block_of(Rank rank, const BufferDescriptor& buffer, bool input) const;

 private:
  Communicator& communicator_;
  const Request& request_;
  std::uint64_t sequence_;
  CountsTally tally_;
};

}  // namespace tutti
