// Where a rank's data lies: its send and receive memory for all sizes of a run.
#pragma once

#include <cstddef>
#include <memory>

#include "perf/harness.h"
#include "perf/launch.h"

namespace perf {

/// Memory of tuttiMemAlloc or malloc, touched once.
class Memory {
 public:
  /// Ends the program when there is not so much.
  Memory(std::size_t bytes, bool from_tutti, int rank);

  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    bool from_tutti;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// Memory of the rank's GPU, of as many bytes as some host memory that it is filled from and looked at in; none where
/// the rank has no GPU.
class DeviceMemory {
 public:
  DeviceMemory(const Gpu* gpu, const Memory& host, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// What a call is given: itself, or the host memory where there is none.
  std::byte* data() const { return at_ == nullptr ? host_ : at_; }
  void store() const;  ///< host → device
  void fetch() const;  ///< device → host

 private:
  const Gpu* gpu_;
  std::byte* host_;
  std::size_t bytes_;
  std::byte* at_ = nullptr;
};

/// The two buffers of a call. In place, both lie in one, which is as large as the larger of the two.
class CallBuffers {
 public:
  /// Room for `bytes` of the larger buffer, in every type.
  CallBuffers(const Description& description, const Rank& rank, std::size_t bytes, Buffers kind);

  /// Sets send and recv of a call whose other fields are set.
  void place(Call& call, bool in_place) const;

  /// Fills what the rank sends and poisons what it is to receive.
  void prepare(const Call& call, bool in_place, const Pattern& pattern) const;
  /// Zeros everywhere: what in-place reductions are timed with, since their results are the next call's inputs.
  void clear() const;

  /// Brings what a call left where the host can look at it: to `host(call.recv)`.
  void fetch() const;
  /// Where the host sees a byte of a buffer of a call.
  std::byte* host(const void* of_call) const;

  /// Elements that are not as they must be, also in what the call had no business to touch.
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

/// Bytes of one block when the larger buffer has at least `bytes`: whole elements, so never less than was asked for.
std::size_t count_for(const Description& description, std::size_t bytes, std::size_t element, int ranks);
/// Bytes of the larger buffer, which nccl-tests calls the size.
std::size_t bytes_for(const Description& description, std::size_t count, std::size_t element, int ranks);

}  // namespace perf
