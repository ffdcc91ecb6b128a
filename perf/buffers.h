// A rank's send and receive memory for all sizes of a run.
#pragma once

#include <cstddef>
#include <memory>

#include "perf/harness.h"
#include "perf/launch.h"

namespace perf {

/// Memory of tuttiMemAlloc or malloc, touched once.
class Memory {
 public:
  /// Ends the program if there is not enough memory.
  Memory(std::size_t bytes, bool from_tutti, int rank);

  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    bool from_tutti;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// Memory of the rank's GPU, as large as the host memory from which it is filled and in which it is checked; none if
/// the rank has no GPU.
class DeviceMemory {
 public:
  DeviceMemory(const Gpu* gpu, const Memory& host, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// The memory to pass to a call: the device memory, or the host memory if there is none.
  std::byte* data() const { return at_ == nullptr ? host_ : at_; }
  void store() const;  ///< host → device
  void fetch() const;  ///< device → host

 private:
  const Gpu* gpu_;
  std::byte* host_;
  std::size_t bytes_;
  std::byte* at_ = nullptr;
};

/// The two buffers of a call. In place, both are in one buffer, as large as the larger of the two.
class CallBuffers {
 public:
  /// Allocates `bytes` for the larger buffer, for every type.
  CallBuffers(const Description& description, const Rank& rank, std::size_t bytes, Buffers kind);

  /// Sets send and recv of a call whose other fields are set.
  void place(Call& call, bool in_place) const;

  /// Fills the rank's send data and poisons its receive data.
  void prepare(const Call& call, bool in_place, const Pattern& pattern) const;
  /// Zeros everywhere: in-place reductions are timed with zeros, since their results are the next call's inputs.
  void clear() const;

  /// Copies a call's results to where the host can read them: `host(call.recv)`.
  void fetch() const;
  /// The host's address of a byte of a call's buffer.
  std::byte* host(const void* of_call) const;

  /// Number of wrong elements, including memory that the call must not write.
  std::size_t count_wrong(const Call& call, bool in_place, const Pattern& pattern) const;

 private:
  std::size_t blocks(Blocks of) const { return of == Blocks::one ? 1 : ranks_; }
  std::size_t count_stray(const Call& call, const std::vector<Piece>& pieces) const;

  const Description& description_;
  std::size_t ranks_;
  std::size_t block_bytes_;  ///< at most, of one block
  std::size_t send_bytes_, recv_bytes_;
  Memory send_, recv_;
  DeviceMemory device_send_, device_recv_;
};

/// Number of elements of one block when the larger buffer has at least `bytes`: rounded up to whole elements, so never
/// less than requested.
std::size_t count_for(const Description& description, std::size_t bytes, std::size_t element, int ranks);
/// Bytes of the larger buffer, which nccl-tests calls the size.
std::size_t bytes_for(const Description& description, std::size_t count, std::size_t element, int ranks);

}  // namespace perf
