// Rights that ranks gave up after the start: a daemon that becomes another user, a process that forbids to trace it.
// Their peers can no longer map or copy their memory, or they those of their peers.
#pragma once

#include <cstdint>

#include "comm/membership.h"

namespace tutti {

/// Whether this process still has the user of the start: descriptor servers refuse others. If not, its peers are told
/// for good, and the log. Costs a system call. Any thread.
bool still_maps(Process& process, const Membership& members);
/// Whether it also may be traced as at the start, on which CMA depends. Costs two system calls. Any thread.
bool still_pulls(Process& process, const Membership& members);

/// The kernel or a peer's server has refused this rank. Any thread.
void give_up_mapping(Process& process, const Membership& members);

/// What a peer of this host has said of itself, in the bits of AreaHeader::gave_up. Who cannot map cannot pull either.
inline constexpr std::uint32_t gave_up_pulling = 1, gave_up_mapping = 2;
inline bool has_given_up_mapping(const Peer& peer) {
  return (peer.area.header().gave_up.load(std::memory_order_relaxed) & gave_up_mapping) != 0;
}
inline bool has_given_up_pulling(const Peer& peer) {
  return (peer.area.header().gave_up.load(std::memory_order_relaxed) & gave_up_pulling) != 0;
}

}  // namespace tutti
