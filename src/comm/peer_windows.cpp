#include "comm/peer_windows.h"

#include "transport/fd_server.h"

namespace tutti {

PeerWindows::PeerWindows(Process& process, const Membership& members, const std::atomic<bool>& failed)
    : process_(process), members_(members), failed_(failed), peers_(members.peers.size()) {}

Result<std::byte*> PeerWindows::at(Rank peer, BufferDescriptor buffer, std::size_t bytes) {
  const Peer& from = members_.peers[static_cast<std::size_t>(peer)];
  if (from.same_process) return reinterpret_cast<std::byte*>(buffer.address);
  if (buffer.segment == 0) return static_cast<std::byte*>(nullptr);

  const SegmentName name{.id = buffer.segment, .generation = buffer.generation};
  const std::uint64_t end = buffer.offset + bytes;
  if (end < bytes)
    return Error{.code = Code::remote,
                 .what = "a call descriptor describes a buffer beyond the end of the address space"}
        .at_peer(peer);
  OfPeer& known = peers_[static_cast<std::size_t>(peer)];
  for (const Mapped& one : known.mapped)
    if (one.mapping && one.name == name && one.mapping->bytes() >= end) return one.mapping->data() + buffer.offset;

  const auto fetch = [this, &from](std::uint64_t, SegmentName wanted) -> Result<SegmentTable::Export> {
    const std::int64_t limit_ns = process_.config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000;
    auto fetched = TUTTI_TRY(fetch_segment(from.fd_server, from.key, wanted, limit_ns,
                                           [this] { return failed_.load(std::memory_order_acquire); }));
    return std::move(fetched.segment);
  };
  auto mapping = process_.memory.cache.map(from.token, name, end, fetch);
  if (!mapping) return std::move(mapping).error().during("map the buffer of a peer").at_peer(peer);
  std::byte* const base = (*mapping)->data();
  known.mapped[known.next++ % known.mapped.size()] = {.name = name, .mapping = *std::move(mapping)};
  return base + buffer.offset;
}

void PeerWindows::drop_if_retired(Rank peer, std::uint32_t retired) {
  OfPeer& known = peers_[static_cast<std::size_t>(peer)];
  if (known.retired == retired) return;
  known.retired = retired;
  known.mapped = {};
}

}  // namespace tutti
