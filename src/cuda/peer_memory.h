// GPU memory shared between processes: how its owner describes an allocation, and how another process maps it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/resources.h"

namespace tutti::cuda {

/// Describes a buffer in GPU memory to other ranks of the host. All zero: no buffer.
struct MemoryDescriptor {
  IpcHandle handle{};
  std::uint64_t id = 0;        ///< of the allocation; unique in the owner's process for its lifetime
  std::uint64_t bytes = 0;     ///< of the whole allocation
  std::uint64_t offset = 0;    ///< of the buffer in the allocation
  std::uint64_t address = 0;   ///< of the buffer, for ranks of the same process
  std::uint32_t exported = 0;  ///< 0: other processes cannot map the buffer, and only `address` is valid
  std::uint32_t reserved = 0;
};

/// An allocation of this process.
struct Allocation {
  Address base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  bool operator==(const Allocation&) const = default;
};

/// The allocation with the whole buffer of `bytes` at `at`; its base is 0 if there is none (a buffer across two
/// adjacent allocations), or if the driver does not say. The context must be current. Errors: cuda (sticky errors
/// only).
Result<Allocation> allocation_of(const Gpu& gpu, const std::byte* at, std::size_t bytes);
/// Whether the allocation still exists. As allocation_of.
Result<bool> exists(const Gpu& gpu, const Allocation& allocation);
/// False: the driver cannot export it (memory of pools). As allocation_of.
Result<bool> export_memory(const Gpu& gpu, const Allocation& allocation, IpcHandle& handle);
/// All of the above for one buffer.
Result<MemoryDescriptor> describe(const Gpu& gpu, const std::byte* at, std::size_t bytes);

/// All mappings of the ranks of a process, counted because a process may open a handle only once. Thread-safe.
class PeerMapTable {
 public:
  /// `id`: of the allocation. Errors: cuda; invalid_usage (is_closing).
  Result<Address> open(const Gpu& gpu, const IpcHandle& handle, std::uint64_t id);
  /// Must be called once for each open. The driver is asked to close it when it is Quiet. Until then the same
  /// allocation may be opened again.
  void close(const SharedGpu& gpu, const IpcHandle& handle);
  /// Whether the handle, which `id` has now, was that of another allocation, and is not closed yet.
  bool is_closing(const Gpu& gpu, const IpcHandle& handle, std::uint64_t id);

 private:
  struct Mapped {
    Ordinal gpu = 0;
    IpcHandle handle{};
    std::uint64_t id = 0;
    Address at = 0;
    int users = 0;  ///< 0: to be closed
  };
  Mapped* find(const Gpu& gpu, const IpcHandle& handle);
  std::mutex mutex_;
  std::vector<Mapped> mapped_;
};

/// An allocation of another process, mapped at least as long as this object lives. No kernel that uses it may still run
/// when it ends.
class PeerMapping {
 public:
  /// `table` must outlive the mapping. The context must be current. Errors: cuda.
  static Result<PeerMapping> open(PeerMapTable& table, const SharedGpu& gpu, const IpcHandle& handle, std::uint64_t id);

  std::byte* data() const { return reinterpret_cast<std::byte*>(at_); }  // NOLINT: an address of the GPU's

 private:
  struct Close {
    SharedGpu gpu;
    IpcHandle handle;
    void operator()(PeerMapTable* table) const { table->close(gpu, handle); }
  };
  std::unique_ptr<PeerMapTable, Close> table_;
  Address at_ = 0;
};

}  // namespace tutti::cuda
