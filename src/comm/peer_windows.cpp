#include "comm/peer_windows.h"

#include <utility>

#include "transport/fd_server.h"

namespace tutti {

PeerWindows::PeerWindows(Process& process, const Membership& members, const std::atomic<bool>& failed)
    : process_(process), members_(members), failed_(failed), peers_(members.peers.size()) {}

/// Where the next segment of a peer goes.
PeerWindows::Mapped& PeerWindows::place_in(OfPeer& peer) {
  constexpr std::size_t kept = 4;
  if (peer.mapped.size() < kept) return peer.mapped.emplace_back();
  for (std::size_t tried = 0; tried < peer.mapped.size(); ++tried)
    if (Mapped& one = peer.mapped[peer.next++ % peer.mapped.size()]; !one.held) return one;
  return peer.mapped.emplace_back();
}

Result<PeerWindows::Mapped*> PeerWindows::map(Rank peer, BufferDescriptor buffer, std::size_t bytes) {
  if (buffer.segment == 0) return static_cast<Mapped*>(nullptr);
  const Peer& from = members_.peers[static_cast<std::size_t>(peer)];
  const SegmentName name{.id = buffer.segment, .generation = buffer.generation};
  const std::uint64_t end = buffer.offset + bytes;
  if (end < bytes)
    return Error{.code = Code::remote,
                 .what = "a call descriptor describes a buffer beyond the end of the address space"}
        .at_peer(peer);
  OfPeer& known = peers_[static_cast<std::size_t>(peer)];
  for (Mapped& one : known.mapped)
    if (one.name == name && one.mapping->bytes() >= end) return &one;

  const auto fetch = [this, &from](std::uint64_t, SegmentName wanted) -> Result<SegmentTable::Export> {
    const std::int64_t limit_ns = process_.config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000;
    auto fetched = TUTTI_TRY(fetch_segment(from.fd_server, from.key, wanted, limit_ns,
                                           [this] { return failed_.load(std::memory_order_acquire); }));
    return std::move(fetched.segment);
  };
  auto mapping = process_.memory.cache.map(from.token, name, end, fetch);
  if (!mapping) return std::move(mapping).error().during("map the buffer of a peer").at_peer(peer);
  Mapped& place = place_in(known);
  place = {.name = name, .mapping = *std::move(mapping)};
  return &place;
}

Result<std::byte*> PeerWindows::at(Rank peer, BufferDescriptor buffer, std::size_t bytes) {
  if (members_.peers[static_cast<std::size_t>(peer)].same_process) return reinterpret_cast<std::byte*>(buffer.address);
  Mapped* const mapped = TUTTI_TRY(map(peer, buffer, bytes));
  if (mapped == nullptr) return static_cast<std::byte*>(nullptr);
  mapped->held = true;
  return mapped->mapping->data() + buffer.offset;
}

Result<std::shared_ptr<std::byte>> PeerWindows::share(Rank peer, BufferDescriptor buffer, std::size_t bytes) {
  using Shared = std::shared_ptr<std::byte>;
  if (members_.peers[static_cast<std::size_t>(peer)].same_process)
    return Shared(std::shared_ptr<void>(), reinterpret_cast<std::byte*>(buffer.address));
  const Mapped* const mapped = TUTTI_TRY(map(peer, buffer, bytes));
  if (mapped == nullptr) return Shared();
  return Shared(mapped->mapping, mapped->mapping->data() + buffer.offset);
}

void PeerWindows::begin_collective(Rank peer, std::uint32_t retired) {
  OfPeer& known = peers_[static_cast<std::size_t>(peer)];
  for (Mapped& one : known.mapped) one.held = false;
  if (std::exchange(known.retired, retired) != retired) known.mapped.clear();
}

}  // namespace tutti
