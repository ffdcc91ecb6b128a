// Memory of peers that is mapped here: segments that their calls have named.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/membership.h"

namespace tutti {

/// For the call whose turn it is.
class PeerWindows {
 public:
  /// All outlive it. `failed` ends the wait for a peer's descriptor, as does the limit of the start.
  PeerWindows(Process& process, const Membership& members, const std::atomic<bool>& failed);

  /// `bytes` of `peer`'s memory as its call descriptor names it: mapped, or nullptr where it can only be copied from.
  /// The descriptor is taken by value: the peer can still write to its own, and what was checked must be what is used.
  /// Errors: remote, system.
  Result<std::byte*> at(Rank peer, BufferDescriptor buffer, std::size_t bytes);

  /// Forgets the mappings of `peer`'s process when it has freed segments since (`retired`: its count, from a call
  /// descriptor).
  void drop_if_retired(Rank peer, std::uint32_t retired);

 private:
  struct Mapped {
    SegmentName name;
    SharedMapping mapping;
  };
  struct OfPeer {
    std::array<Mapped, 4> mapped;  ///< the segments its calls named last
    unsigned next = 0;
    std::uint32_t retired = 0;
  };
  Process& process_;
  const Membership& members_;
  const std::atomic<bool>& failed_;
  std::vector<OfPeer> peers_;
};

}  // namespace tutti
