// Segments of peers that are mapped in this process, because a call descriptor named them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/membership.h"

namespace tutti {

/// Used only by the call whose turn it is.
class PeerWindows {
 public:
  /// All arguments must outlive this object. `failed` ends the wait for a segment's file descriptor from a peer, as
  /// does the init limit.
  PeerWindows(Process& process, const Membership& members, const std::atomic<bool>& failed);

  /// Maps `bytes` of `peer`'s memory, which `buffer` describes. nullptr: the memory can only be copied from. `buffer`
  /// is passed by value: the peer could change its descriptor between the check and the use. Errors: remote, system.
  Result<std::byte*> at(Rank peer, BufferDescriptor buffer, std::size_t bytes);

  /// Drops the mappings of `peer`'s process if it has freed segments since the last time. `retired`: its count of freed
  /// segments, from a call descriptor.
  void drop_if_retired(Rank peer, std::uint32_t retired);

 private:
  struct Mapped {
    SegmentName name;
    SharedMapping mapping;
  };
  struct OfPeer {
    std::array<Mapped, 4> mapped;  ///< the segments that its calls named last
    unsigned next = 0;
    std::uint32_t retired = 0;
  };
  Process& process_;
  const Membership& members_;
  const std::atomic<bool>& failed_;
  std::vector<OfPeer> peers_;
};

}  // namespace tutti
