#include "comm/peer_memory_windows.h"

#include <utility>

namespace tutti {

std::optional<Offer> PeerMemoryWindows::describe(int peer, std::span<const std::byte> memory) const {
  Offer offer{.memory = {.address = reinterpret_cast<std::uint64_t>(memory.data())},
              .bytes = memory.size(),
              .retired = process_.segments.retired()};
  if (members_.peers[static_cast<std::size_t>(peer)].same_process) return offer;
  const auto spot = process_.segments.find(memory.data(), memory.size());
  if (!spot) return {};
  offer.memory.segment = spot->name.id;
  offer.memory.generation = spot->name.generation;
  offer.memory.offset = spot->offset;
  return offer;
}

Result<std::span<const std::byte>> PeerMemoryWindows::find(int peer, const Offer& offer) {
  // Only between calls: what the peer has offered in this call may be in use on another channel.
  auto& call = calls_[static_cast<std::size_t>(peer)];
  if (std::exchange(call, mark_.sequence) != mark_.sequence) windows_.drop_if_retired(peer, offer.retired);
  auto at = windows_.at(peer, offer.memory, offer.bytes);
  if (!at) return std::move(at).error();
  if (*at == nullptr)
    return Error{.code = Code::remote, .what = "a message names memory that has no segment", .peer = peer};
  return std::span<const std::byte>(*at, offer.bytes);
}

}  // namespace tutti
