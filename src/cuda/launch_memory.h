// Memory of launches, kept for as long as their kernels may use it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/job.h"
#include "cuda/resources.h"

namespace tutti::cuda {

/// Scratch and staging memory, tables in pinned memory, and plans that others have given up. Contexts must be current.
/// Errors: cuda.
class LaunchMemory {
 public:
  using Held = std::vector<std::shared_ptr<const void>>;
  /// Of transfers or messages, in pinned memory.
  struct Table {
    std::shared_ptr<const PinnedMemory> memory;
    OwnEvent ended;  ///< the kernel that reads it; none in a graph, which keeps the memory
  };

  LaunchMemory() = default;
  /// `tables`: how many are made now.
  static Result<LaunchMemory> make(const SharedGpu& gpu, bool frees_late, int tables);

  /// For the next launch, of so many ranks: bytes for each of them.
  Result<void> make_buffers(std::size_t scratch_bytes, std::size_t staging_bytes, std::size_t ranks);
  /// Of the rank with this index; null if that launch has none.
  std::byte* scratch(std::size_t local) const { return of(scratch_, scratch_bytes_, local); }
  std::byte* staging(std::size_t local) const { return of(staging_, staging_bytes_, local); }
  /// What a graph must keep for such a launch. Later ones may have other memory.
  Held buffers() const { return {scratch_, staging_}; }

  /// For a launch that is captured, or is not; then it is to be put back.
  Result<Table> take_table(std::size_t bytes, bool captured);
  /// What `stream` holds now reads it.
  Result<void> put_back(Table table, Stream stream);

  /// Kernels may use it that are launched already.
  void keep(std::shared_ptr<const void> what) { in_flight_.push_back(std::move(what)); }
  /// Plans may leave their cache while kernels still read them. `ended`: of the last launch so far.
  void keep_plans(Parts parts, Event ended);

 private:
  using Buffer = std::shared_ptr<const DeviceMemory>;
  Result<void> enlarge(Buffer& memory, std::size_t bytes);
  Result<Table> make_table(std::size_t bytes, bool captured) const;
  static std::byte* of(const Buffer& memory, std::size_t bytes, std::size_t local) {
    return bytes == 0 ? nullptr : memory->data() + local * bytes;
  }

  SharedGpu gpu_;
  bool frees_late_ = false;
  Buffer scratch_;  // of all local ranks; graphs may hold earlier allocations
  Buffer staging_;
  std::size_t scratch_bytes_ = 0;  // of each rank
  std::size_t staging_bytes_ = 0;
  std::vector<Table> tables_;  // the oldest first
  Held in_flight_;             // what running kernels may use
};

}  // namespace tutti::cuda
