// Ordinary memory that has become a segment for a while.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "transport/segment.h"

namespace tutti {

/// Gives the memory back in its destructor; see SegmentTable::adopt, also for the errors.
class AdoptedMemory {
 public:
  /// `segments` must outlive the object.
  static Result<AdoptedMemory> adopt(SegmentTable& segments, std::span<std::byte> memory) {
    TUTTI_TRY(segments.adopt(memory));
    return AdoptedMemory(segments, memory);
  }
  AdoptedMemory(AdoptedMemory&& other) noexcept
      : segments_(std::exchange(other.segments_, nullptr)), memory_(other.memory_) {}
  AdoptedMemory& operator=(AdoptedMemory&&) = delete;
  ~AdoptedMemory() {
    if (segments_ != nullptr) segments_->disown(memory_);
  }

 private:
  AdoptedMemory(SegmentTable& segments, std::span<std::byte> memory) : segments_(&segments), memory_(memory) {}
  SegmentTable* segments_;
  std::span<std::byte> memory_;
};

}  // namespace tutti
