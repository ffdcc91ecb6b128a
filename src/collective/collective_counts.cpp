// What a collective with a count per rank adds: counts are published, compared, and looked up block by block.
#include <cstdint>
#include <cstring>

#include "call/mismatch.h"
#include "collective/collective_call.h"

namespace tutti {

static_assert(sizeof(Share) == RankArea::share_bytes);

/// Each rank's share by itself, so that a reader needs no more than its own.
void CollectiveCall::write_counts(CallDescriptor& line) {
  std::memcpy(line.small, &request_.layout->line, sizeof(CountsDescriptor));
  const Rank rank = communicator_.rank();
  auto* const shares = reinterpret_cast<Share*>(communicator_.members().area->area.shares(sequence_));
  for (Rank peer = 0; peer < shape_.ranks; ++peer) shares[peer] = share_with(request_, *request_.layout, rank, peer);
}

/// From the call descriptors alone: a mismatch shows on all ranks, before any of them writes.
Result<void> CollectiveCall::compare_counts() {
  if (!tally_.balanced()) {
    std::vector<std::span<const Share>> shares_of;
    for (const Peer& peer : communicator_.members().peers)
      shares_of.emplace_back(reinterpret_cast<const Share*>(peer.area.shares(sequence_)), shape_.ranks);
    return counts_mismatch(shares_of, request_);
  }
  return take_largest_count();
}

Result<void> CollectiveCall::take_largest_count() {
  count_ = tally_.largest();
  if (count_ > PTRDIFF_MAX / size_of(request_.type))
    return Error{.code = Code::remote, .what = "a call descriptor names more elements than there is memory"};
  size_.group_bytes = count_ * size_of(request_.type);
  return {};
}

/// The one block that this rank touches in a peer's buffer where groups differ, as the peer published it; `bytes` by
/// this rank's own counts.
Result<BufferDescriptor> CollectiveCall::block_of(Rank rank, BufferDescriptor line, bool input,
                                                  std::size_t& bytes) const {
  const Share own = share_with(request_, *request_.layout, communicator_.rank(), rank);
  Share theirs;
  const std::byte* const shares = communicator_.members().peers[rank].area.shares(sequence_);
  std::memcpy(&theirs, shares + communicator_.rank() * sizeof(Share), sizeof theirs);
  const Range& block = input ? theirs.sent : theirs.received;
  const std::size_t count = input ? own.received.count : own.sent.count, element = size_of(request_.type);
  if (block.count != count || block.begin > PTRDIFF_MAX / element)
    return Error{.code = Code::remote, .what = "the counts that a rank published make no sense", .peer = rank};
  bytes = count * element;
  line.offset += block.begin * element;
  line.address += block.begin * element;
  return line;
}

}  // namespace tutti
