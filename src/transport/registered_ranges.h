// Ordinary memory that its owner keeps mapped until it is taken back (tuttiCommRegister).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "transport/segment.h"

namespace tutti {

/// Ordinary memory that has become a segment for a while. Gives the memory back in its destructor; see
/// SegmentTable::adopt, also for the errors.
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

/// The ranges of one communicator. They may overlap. Thread-safe.
class RegisteredRanges {
 public:
  struct Range {
    std::uint64_t id = 0;  ///< from 1; never given again
    std::span<std::byte> memory;
  };

  /// `adopted`: what is given back before the range is removed. One thread at a time adds, removes and disowns.
  std::uint64_t add(std::span<std::byte> memory, std::optional<AdoptedMemory> adopted = {});
  /// False: no such range.
  bool remove(std::uint64_t id);
  /// Gives all adopted memory back, which its owner may then free.
  void disown() { adopted_.clear(); }

  /// A range that contains all of `memory`, if there is one.
  std::optional<Range> find(std::span<const std::byte> memory) const;
  bool has(std::uint64_t id) const;
  /// How often a range was removed.
  std::uint32_t removals() const { return removals_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::size_t> count_ = 0;  // so that calls without any range take no lock
  std::atomic<std::uint32_t> removals_ = 0;
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> ranges_;                        // by id
  std::map<std::pair<const std::byte*, std::uint64_t>, std::size_t> by_begin_;  // and id: length
  std::size_t longest_ = 0;                                                     // of all so far
  std::map<std::uint64_t, AdoptedMemory> adopted_;                              // by id; not under the mutex
};

}  // namespace tutti
