// Memory that other processes can map: memfds with an id and a generation, owned by this process. They have no names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>

#include "base/error.h"
#include "base/mapping.h"
#include "base/unique_fd.h"

namespace tutti {

/// Identifies a segment and its generation: moving a segment onto fresh pages begins a new generation.
struct SegmentName {
  std::uint32_t id = 0;  ///< from 1
  std::uint32_t generation = 0;
  auto operator<=>(const SegmentName&) const = default;
};

struct SegmentLocation {
  SegmentName name;
  std::uint64_t offset = 0;
};

/// The segments this process owns. Thread-safe.
class SegmentTable {
 public:
  /// Zero-filled memory of at least `bytes`, 2 MiB aligned when large, with huge pages requested. `touch`: the calling
  /// thread touches it; otherwise it is sparse. It lies on NUMA node `node` as far as that has memory left; if that is
  /// -1 or the kernel does not take it, each page on the node of the thread that first touches it. Errors: system (no
  /// memory, no descriptor: what is needed and how to raise it).
  Result<std::byte*> allocate(std::size_t bytes, bool touch, int node = -1);

  /// Why the kernel did not take a node, the last time that it did not: an errno; 0: it took all.
  int node_refused() const { return node_refused_.load(std::memory_order_relaxed); }

  /// Errors: invalid_argument (not the start of a segment, or adopted).
  Result<void> free(std::byte* at);

  /// Moves the whole pages around ordinary memory into a segment, at the same address and with the same content, until
  /// `disown` was called as often with the same memory. No thread may write to these pages meanwhile. Memory that lies
  /// in a segment already stays there. Errors: invalid_argument (memory that is not private, anonymous and writable;
  /// that reaches beyond a segment); system.
  Result<void> adopt(std::span<std::byte> memory);
  /// Where memory is lacking, it stays shared.
  void disown(std::span<std::byte> memory);

  /// Called when every peer that is to map the segment at `at` has done so: closes the segment's descriptor; `share`
  /// refuses the segment from now on.
  void stop_sharing(const std::byte* at);

  /// The segment that contains all of [at, at + bytes), if there is one.
  std::optional<SegmentLocation> find(const void* at, std::size_t bytes) const;

  /// A descriptor of the segment for a peer, and the segment's length. Errors: invalid_argument (no such segment or
  /// generation).
  struct Export {
    UniqueFd fd;
    std::size_t bytes = 0;
  };
  Result<Export> share(SegmentName name) const;

  /// Peers can fetch a descriptor that is no segment like one, as long as the result lives, which the table outlives.
  class Offered {
   public:
    Offered(SegmentTable& table, SegmentName name) : table_(table), name_(name) {}
    ~Offered() { table_.take_back(name_); }
    Offered(const Offered&) = delete;
    Offered& operator=(const Offered&) = delete;

    SegmentName name() const { return name_; }

   private:
    SegmentTable& table_;
    SegmentName name_;
  };
  std::unique_ptr<Offered> offer(Export descriptor);

  /// Counts frees and moves. A peer that sees the count change looks for mappings to drop.
  std::uint32_t retired() const { return retired_.load(std::memory_order_acquire); }
  bool alive(SegmentName name) const;

  /// Moves the segment that contains `at` onto fresh pages with the same content and address, so that no late peer can
  /// write there. Does nothing for memory outside segments. Errors: system.
  Result<void> move_aside(const void* at);

 private:
  struct Owned {
    SegmentName name;
    UniqueFd fd;
    Mapping mapping;
    bool touched = false;
    int node = -1;
    int adopters = 0;  ///< not 0: ordinary memory that has been adopted this many times
  };
  /// The last of the segments that contain some of [at, at + bytes).
  template <class Segments>
  static auto* around(Segments& segments, const void* at, std::size_t bytes);
  void prefer_node(Mapping& mapping, int node);
  const Owned* named(SegmentName name) const;
  SegmentName new_name();  ///< with the mutex held
  void take_back(SegmentName name);

  std::mutex adopting_;  // held while pages are copied, which can take long; before mutex_
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Owned> segments_;  // by address
  std::map<SegmentName, Export> offered_;
  std::uint32_t next_id_ = 1;
  std::atomic<std::uint32_t> retired_ = 0;
  std::atomic<int> node_refused_ = 0;
};

/// Memory for the library's own use that peers can map. It grows as needed; growing loses its content.
class GrowingSegment {
 public:
  /// `table` must outlive this object; `node`: as SegmentTable::allocate.
  explicit GrowingSegment(SegmentTable& table, int node = -1) : table_(table), node_(node) {}
  ~GrowingSegment() {
    if (at_ != nullptr) (void)table_.free(at_);
  }
  GrowingSegment(const GrowingSegment&) = delete;
  GrowingSegment& operator=(const GrowingSegment&) = delete;

  /// Errors: system.
  Result<std::byte*> at_least(std::size_t bytes);

 private:
  SegmentTable& table_;
  int node_;
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A peer's segment as mapped here; unmapped when its last owner releases it.
using SharedMapping = std::shared_ptr<const Mapping>;

/// Mappings of other processes' segments: one per segment and process, shared by all communicators. Thread-safe.
class SegmentCache {
 public:
  /// Gets the descriptor from the owner; called without holding a lock.
  using Fetch = std::function<Result<SegmentTable::Export>(std::uint64_t process, SegmentName name)>;

  /// The segment of `process` (a number that this cache's users agree on), mapped here; fetched on first use. Errors:
  /// those of `fetch`; remote (the segment is shorter than `bytes_needed`, or its owner could shorten it).
  Result<SharedMapping> map(std::uint64_t process, SegmentName name, std::size_t bytes_needed, const Fetch& fetch);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, SegmentName>, std::weak_ptr<const Mapping>> mappings_;
};

}  // namespace tutti
