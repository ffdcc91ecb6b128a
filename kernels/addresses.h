// Where the blocks that a plan names lie in one call: in buffers of this rank and of others, and in messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

/// Where windows of other ranks begin is known only once ranks have synchronised: an address there is an offset until
/// then.
class Addresses {
 public:
  /// `cut`, `links` and `windows` (by rank) are in shared memory, and may be filled later.
  TUTTI_DEVICE Addresses(const Call& call, const RankCall& rank, const Cut& cut, const HeldLinks& links,
                         const PeerBuffers* windows)
      : call_(call),
        rank_(rank),
        cut_(cut),
        links_(links),
        windows_(windows),
        by_windows_(call.choose != 0) {}  // which ranks choose most often

  /// Whether the call goes through windows that ranks of other launches offer.
  TUTTI_DEVICE bool by_windows() const { return by_windows_; }
  TUTTI_DEVICE void set_by_windows(bool by_windows) { by_windows_ = by_windows; }

  TUTTI_DEVICE const std::byte* read(const Place& place, const Extent& extent) const {
    switch (place.where) {
      case Where::input: return rank_.input + offset_of(place, extent);
      case Where::peer_input:
        if (is_in_window(place)) return reinterpret_cast<const std::byte*>(offset_of(place, extent));
        return buffers_of(place.peer).input + offset_of(place, extent);
      case Where::slot: {
        const Link& link = links_.of[place.peer];
        return link.slots_here + link.released % call_.slots * call_.slot_bytes + place.block * cut_.stride;
      }
      default: return written(place, extent);
    }
  }

  TUTTI_DEVICE std::byte* written(const Place& place, const Extent& extent) const {
    switch (place.where) {
      case Where::output: return rank_.output + offset_of(place, extent);
      case Where::peer_output:
        if (is_in_window(place)) return reinterpret_cast<std::byte*>(offset_of(place, extent));
        return buffers_of(place.peer).output + offset_of(place, extent);
      case Where::slot: {
        const Link& link = links_.of[place.peer];
        return link.slots_there + link.committed % call_.slots * call_.slot_bytes + place.block * cut_.stride;
      }
      default: return rank_.scratch + offset_of(place, extent);
    }
  }

  /// Completes the i-th address of a pass, now that the ranks have met.
  TUTTI_DEVICE void place_in_window(Operands& o, int i, int sources, const Place& place) const {
    if (!is_in_window(place)) return;
    const PeerBuffers& window = windows_[place.peer];
    if (place.where == Where::peer_input && i < sources)
      o.sources[i] = window.input + reinterpret_cast<std::uintptr_t>(o.sources[i]);
    if (place.where != Where::peer_output) return;
    if (i < sources)
      o.sources[i] = window.output + reinterpret_cast<std::uintptr_t>(o.sources[i]);
    else
      o.destinations[i - sources] = window.output + reinterpret_cast<std::uintptr_t>(o.destinations[i - sources]);
  }

  /// As written(), when the ranks have met.
  TUTTI_DEVICE std::byte* in_window(const Place& place, const Extent& extent) const {
    std::byte* const at = written(place, extent);
    if (place.where != Where::peer_output || !is_in_window(place)) return at;
    return windows_[place.peer].output + reinterpret_cast<std::uintptr_t>(at);
  }

  TUTTI_DEVICE PeerBuffers buffers_of(std::uint32_t rank) const {
    return call_.table != nullptr ? call_.table[rank] : call_.buffers[rank];
  }

 private:
  TUTTI_DEVICE bool is_in_window(const Place& place) const { return by_windows_ && place.peer != rank_.rank; }

  TUTTI_DEVICE std::uint64_t offset_of(const Place& place, const Extent& extent) const {
    const std::uint32_t group = place.block / cut_.parts;
    return (group * cut_.count + extent.begin) * cut_.element_bytes;
  }

  const Call& call_;
  const RankCall& rank_;
  const Cut& cut_;
  const HeldLinks& links_;
  const PeerBuffers* windows_;
  bool by_windows_;
};

}  // namespace tutti::device
