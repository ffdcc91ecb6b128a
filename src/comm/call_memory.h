// Memory that calls use one after another, kept so that a call allocates none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "transport/call_descriptor.h"
#include "transport/segment.h"

namespace tutti {

/// For the call whose turn it is.
class CallMemory {
 public:
  /// `segments`, which must outlive this object, allocates near `node`. `offers_scratch`: peers or devices read scratch
  /// memory in place.
  CallMemory(SegmentTable& segments, int node, bool offers_scratch, std::size_t ranks)
      : notes_{.descriptors = std::vector<const CallDescriptor*>(ranks),
               .memory = std::vector<PeerMemory>(ranks),
               .scalars = std::vector<std::uint64_t>(ranks)},
        offers_scratch_(offers_scratch),
        offered_scratch_(segments, node),
        staging_(segments, node) {}

  /// A call's notes on its peers, by rank.
  struct Notes {
    std::vector<const CallDescriptor*> descriptors;
    std::vector<PeerMemory> memory;
    std::vector<std::uint64_t> scalars;
    std::optional<bool> all_mapped;  ///< the buffers of all ranks, in all calls so far that were not small
  };
  Notes& notes() { return notes_; }

  /// At least `bytes` of memory for plans that need it.
  Result<std::byte*> scratch(std::size_t bytes) {
    if (offers_scratch_) {
      auto memory = offered_scratch_.at_least(bytes);
      if (!memory) return std::move(memory).error().during("allocate scratch memory");
      return memory;
    }
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }
  /// As scratch, in memory that peers can map: for the copied inputs of in-place all-to-alls.
  Result<std::byte*> staging(std::size_t bytes) {
    auto memory = staging_.at_least(bytes);
    if (!memory) return std::move(memory).error().during("allocate memory for an all-to-all in place");
    return memory;
  }

 private:
  Notes notes_;
  const bool offers_scratch_;
  std::vector<std::byte> scratch_;
  GrowingSegment offered_scratch_;
  GrowingSegment staging_;
};

}  // namespace tutti
