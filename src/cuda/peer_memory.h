// GPU memory shared between processes: how its owner describes a buffer, and how other processes map it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/resources.h"

namespace tutti::cuda {

/// Describes a buffer in GPU memory to other ranks of the host. All zero: no buffer.
struct MemoryLine {
  IpcHandle handle{};
  std::uint64_t id = 0;        ///< of the allocation; unique in the owner's process for its lifetime
  std::uint64_t bytes = 0;     ///< of the whole allocation
  std::uint64_t offset = 0;    ///< of the buffer in the allocation
  std::uint64_t address = 0;   ///< of the buffer, for ranks of the same process
  std::uint32_t exported = 0;  ///< 0: other processes cannot map the buffer, and only `address` is valid
  std::uint32_t reserved = 0;
};

/// Describes buffers of this process to others. One thread at a time; the GPU's context must be current.
class Exports {
 public:
  explicit Exports(SharedGpu gpu) : gpu_(std::move(gpu)) {}

  /// Describes the buffer of `bytes` at `at`. `exported` is 0 if the driver cannot export it (memory of pools, or a
  /// buffer across two adjacent allocations). Errors: cuda (sticky errors only).
  Result<MemoryLine> locate(const std::byte* at, std::size_t bytes);

 private:
  struct Known {
    Address base = 0;
    std::uint64_t id = 0;
    IpcHandle handle{};
  };
  static constexpr std::size_t known_max = 256;

  SharedGpu gpu_;
  std::vector<Known> known_;  // most recently used first
};

/// All mappings of the ranks of a process, counted because a process may open a handle only once. Thread-safe.
class PeerMapTable {
 public:
  /// Errors: cuda.
  Result<Address> open(const Gpu& gpu, const IpcHandle& handle);
  /// Must be called once for each open.
  void close(const Gpu& gpu, const IpcHandle& handle);

 private:
  struct Open {
    Ordinal gpu = 0;
    IpcHandle handle{};
    Address at = 0;
    int users = 0;
  };
  std::mutex mutex_;
  std::vector<Open> open_;
};

/// Maps buffers of other processes and keeps the most recently used ones of each rank mapped. One thread at a time; the
/// GPU's context must be current, and no kernel that uses an earlier call's buffers may still run.
class PeerMaps {
 public:
  /// `table` must outlive this object.
  PeerMaps(PeerMapTable& table, SharedGpu gpu, int ranks)
      : table_(table), gpu_(std::move(gpu)), of_(static_cast<std::size_t>(ranks)) {}
  ~PeerMaps();
  PeerMaps(const PeerMaps&) = delete;
  PeerMaps& operator=(const PeerMaps&) = delete;

  /// Maps the buffer of `bytes` that `rank` described by `descriptor`. Errors: remote (the description is invalid; peer
  /// set), cuda.
  Result<std::byte*> map(int rank, const MemoryLine& descriptor, std::size_t bytes);

 private:
  struct Mapped {
    std::uint64_t id = 0;
    IpcHandle handle{};
    Address at = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t mapped_max = 256;  // per rank; more than programs allocate, as unmapping may wait

  PeerMapTable& table_;
  SharedGpu gpu_;
  std::vector<std::vector<Mapped>> of_;  // by rank, the last used first
};

}  // namespace tutti::cuda
