// Memory of GPUs that several processes reach: how an owner names a buffer, and how others map it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/resources.h"

namespace tutti::cuda {

/// Where a buffer is, as its owner tells other ranks of its host. All zero: there is none.
struct MemoryLine {
  IpcHandle handle{};
  std::uint64_t id = 0;        ///< of the allocation: no two that a process ever has are alike
  std::uint64_t bytes = 0;     ///< of the whole allocation,
  std::uint64_t offset = 0;    ///<   in which the buffer begins here
  std::uint64_t address = 0;   ///< of the buffer, for ranks of the same process
  std::uint32_t exported = 0;  ///< 0: other processes cannot map it, and the above but the address means nothing
  std::uint32_t reserved = 0;
};

/// Names buffers of this process's. Used by one thread at a time; contexts are current.
class Exports {
 public:
  explicit Exports(SharedGpu gpu) : gpu_(std::move(gpu)) {}

  /// Of a buffer of `bytes` at `at`; not exported where the driver cannot (memory of pools, or two allocations side by
  /// side). Errors: cuda (a sticky one).
  Result<MemoryLine> locate(const std::byte* at, std::size_t bytes);

 private:
  struct Known {
    Address base = 0;
    std::uint64_t id = 0;
    IpcHandle handle{};
  };
  static constexpr std::size_t known_max = 256;

  SharedGpu gpu_;
  std::vector<Known> known_;  // the last ones first
};

/// What all ranks of a process have mapped: a handle may be opened once in a process. Any thread.
class PeerMapTable {
 public:
  /// Errors: cuda.
  Result<Address> open(const Gpu& gpu, const IpcHandle& handle);
  /// Once for each open.
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

/// Buffers of other processes, mapped here; the last ones of each rank stay mapped. Used by one thread at a time;
/// contexts are current, and nothing that uses an earlier call's buffers runs any more.
class PeerMaps {
 public:
  /// `table` must live as long.
  PeerMaps(PeerMapTable& table, SharedGpu gpu, int ranks)
      : table_(table), gpu_(std::move(gpu)), of_(static_cast<std::size_t>(ranks)) {}
  ~PeerMaps();
  PeerMaps(const PeerMaps&) = delete;
  PeerMaps& operator=(const PeerMaps&) = delete;

  /// `bytes` at `line`, which came from `rank`. Errors: remote (the line makes no sense; peer set), cuda.
  Result<std::byte*> map(int rank, const MemoryLine& line, std::size_t bytes);

 private:
  struct Mapped {
    std::uint64_t id = 0;
    IpcHandle handle{};
    Address at = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t mapped_max = 256;  // of one rank; more than programs allocate, as letting go may wait

  PeerMapTable& table_;
  SharedGpu gpu_;
  std::vector<std::vector<Mapped>> of_;  // by rank, the last used first
};

}  // namespace tutti::cuda
