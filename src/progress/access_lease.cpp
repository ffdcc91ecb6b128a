#include "progress/access_lease.h"

#include <algorithm>

namespace tutti {
namespace {

std::atomic<std::uint32_t>& touching(const Peer& peer) {
  return peer.area.header().touching;
}

void await_leases(Communicator& communicator) {
  constexpr std::int64_t limit_ns = 1'000'000'000;
  System& system = communicator.process().system;
  const std::int64_t deadline = system.now_ns() + limit_ns;
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    const Peer& peer = communicator.members().peers[rank];
    if (!peer.same_process || rank == communicator.rank()) continue;
    while (touching(peer).load(std::memory_order_seq_cst) != 0) {
      if (system.now_ns() > deadline) {
        communicator.process().log.warn(
            communicator.members().who,
            "{} did not release the buffers of the failed call within 1 s and may still access them",
            communicator.members().describe(rank));
        return;
      }
      system.yield();
    }
  }
}

}  // namespace

/// Raises `touching` before the owner of the lease looks for failures. A rank that fails sets its state first and then
/// looks at `touching`. So at least one of both sees the other.
AccessLease::AccessLease(Communicator& communicator) : communicator_(communicator) {
  touching(communicator.members().peers[communicator.rank()]).fetch_add(1, std::memory_order_seq_cst);
}

AccessLease::~AccessLease() {
  touching(communicator_.members().peers[communicator_.rank()]).fetch_sub(1, std::memory_order_release);
}

void take_back_buffers(Communicator& communicator, const void* leased) {
  await_leases(communicator);
  const auto& peers = communicator.members().peers;
  if (leased == nullptr || std::ranges::all_of(peers, &Peer::same_process)) return;
  auto moved = communicator.process().memory.segments.move_aside(leased);
  if (!moved) communicator.process().log.warn(communicator.members().who, "{}", moved.error().text());
}

}  // namespace tutti
