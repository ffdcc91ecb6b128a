// The counts of a call with a count per rank, where ranks share memory: published beside the call descriptors, compared
// by their sums, looked up pair by pair.
#pragma once

#include <cstddef>
#include <cstdint>

#include "call/layout.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

class PublishedCounts {
 public:
  /// Both must outlive it. The request has a layout.
  PublishedCounts(Communicator& communicator, const Request& request, std::uint64_t sequence)
      : communicator_(communicator), request_(request), sequence_(sequence) {}

  /// Writes the sums of this rank's counts into its descriptor, and beside it what this rank exchanges with each peer:
  /// so a reader needs no more than its own share.
  void publish(CallDescriptor& line);
  /// Reads the sums of one rank.
  void add(const CallDescriptor& line);
  /// After those of all ranks: the largest count. All ranks find alike, before any of them writes. Errors:
  /// invalid_usage (ranks disagree, in words), remote.
  Result<std::size_t> agree() const;

  /// The one block that this rank touches in a buffer of `rank`, whose descriptor is `buffer`.
  struct Block {
    BufferDescriptor buffer;
    std::size_t bytes = 0;
  };
  /// Errors: remote (what the rank published makes no sense).
  Result<Block> block_of(Rank rank, const BufferDescriptor& buffer, bool input) const;

 private:
  Communicator& communicator_;
  const Request& request_;
  std::uint64_t sequence_;
  CountsTally tally_;
};

}  // namespace tutti
