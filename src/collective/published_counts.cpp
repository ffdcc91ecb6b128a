#include "collective/published_counts.h"

#include <cstring>
#include <span>
#include <vector>

namespace tutti {

static_assert(sizeof(Share) == RankArea::share_bytes);

void PublishedCounts::publish(CallDescriptor& descriptor) {
  std::memcpy(descriptor.small, &request_.layout->line, sizeof(CountsDescriptor));
  auto* const shares = reinterpret_cast<Share*>(communicator_.members().area->area.shares(sequence_));
  for (Rank peer = 0; peer < communicator_.ranks(); ++peer) shares[peer] = share_with(request_, *request_.layout, peer);
}

Result<std::size_t> PublishedCounts::agree() const {
  if (tally_.balanced()) return tally_.largest(size_of(request_.type));
  std::vector<std::span<const Share>> shares_of;
  for (const Peer& peer : communicator_.members().peers)
    shares_of.emplace_back(reinterpret_cast<const Share*>(peer.area.shares(sequence_)), communicator_.ranks());
  return counts_mismatch(shares_of, request_);
}

Result<PublishedCounts::Block> PublishedCounts::block_of(Rank rank, const BufferDescriptor& buffer, bool input) const {
  const Share own = share_with(request_, *request_.layout, rank);
  Share theirs;
  const std::byte* const shares = communicator_.members().peers[rank].area.shares(sequence_);
  std::memcpy(&theirs, shares + communicator_.rank() * sizeof(Share), sizeof theirs);
  const Range& range = input ? theirs.sent : theirs.received;
  const std::size_t count = input ? own.received.count : own.sent.count;
  const std::size_t element = size_of(request_.type);
  if (range.count != count || range.begin > PTRDIFF_MAX / element)
    return Error{.code = Code::remote, .what = "a rank published invalid counts", .peer = rank};
  Block block{.buffer = buffer, .bytes = count * element};
  block.buffer.offset += range.begin * element;
  block.buffer.address += range.begin * element;
  return block;
}

}  // namespace tutti
