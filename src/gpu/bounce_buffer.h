// Bounce buffers: host memory for calls on device memory that no kernel serves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/resources.h"
#include "kernels/entries.h"
#include "process/gpu_process.h"
#include "transport/segment.h"

namespace tutti {

/// Host memory for one call at a time, which peers can map and GPUs copy from and to, and two words by which a stream
/// and the host wait for each other. Each use of a buffer is divided into phases, numbered upwards from 0. A use ends
/// when both the host and the stream are done with it.
class BounceBuffer {
 public:
  /// The context must be current. Errors: system, cuda.
  static Result<std::shared_ptr<BounceBuffer>> make(SegmentTable& segments, const cuda::SharedGpu& gpu,
                                                    std::size_t bytes, int node);
  ~BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;

  std::byte* data() const { return at_; }
  std::size_t bytes() const { return bytes_; }

  // ---- For the thread that queues the call; the context must be current, except for take ----

  /// Begins a use, for the batch with this number.
  void take(std::uint64_t batch);
  std::uint64_t batch() const { return batch_; }
  /// Queues a write that tells the host that all work queued before is done. Errors: cuda.
  Result<void> signal(cuda::Stream stream, std::uint32_t phase = 0);
  /// Queues a wait until the host has called let_go with `phase` or a later one. Errors: cuda.
  Result<void> await(cuda::Stream stream, std::uint32_t phase = last_phase);
  /// Ends the stream's part of this use: it is over when the work that `stream` holds now has ended. Errors: cuda.
  Result<void> seal(cuda::Stream stream);

  // ---- Any thread ----

  static constexpr std::uint32_t last_phase = (1u << 12) - 1;

  bool landed(std::uint32_t phase = 0) const;  ///< the stream has signalled `phase`
  void let_go(std::uint32_t phase);            ///< lets the stream pass its waits up to `phase`
  void release();                              ///< ends the host's part: lets the stream pass all waits of this use

  /// Table in pinned memory in which the host gives the kernels of this use the buffers of all ranks; device_table is
  /// its address on the GPU.
  device::PeerBuffers* table() const;
  const device::PeerBuffers* device_table() const;

  /// True if no use is under way, or if the GPU runs nothing any more. The context must be current.
  bool free();

 private:
  BounceBuffer(SegmentTable& segments, cuda::SharedGpu gpu) : segments_(segments), gpu_(std::move(gpu)) {}

  std::uint32_t value(std::uint32_t phase) const { return use_ * (last_phase + 1) + phase; }

  SegmentTable& segments_;
  cuda::SharedGpu gpu_;
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  cuda::Registration registration_;
  cuda::PinnedMemory words_;
  cuda::OwnEvent ended_;
  std::uint64_t batch_ = 0;
  std::uint32_t use_ = 0;
  std::atomic<bool> with_stream_ = false;
  std::atomic<bool> with_host_ = false;
};

/// The bounce buffers of one rank, reused; there are as many as calls under way. Thread-safe.
class BouncePool {
 public:
  /// Errors: invalid_usage (streams of this GPU cannot wait for memory), cuda.
  static Result<std::shared_ptr<BouncePool>> open(GpuProcess& process, SegmentTable& segments,
                                                  const cuda::SharedGpu& gpu);
  /// Waits for running work, at most a second. Memory of work that has not ended then is never freed.
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  const cuda::SharedGpu& gpu() const { return gpu_; }

  /// The NUMA node of the buffers, as in SegmentTable::allocate. Before the first one is taken.
  void lie_on(int node) { node_ = node; }

  /// Takes a buffer of at least `bytes` for the batch with this number. Null: too much is in use; try again later. The
  /// context must be current. Errors: system, cuda.
  Result<std::shared_ptr<BounceBuffer>> lease(std::size_t bytes, std::uint64_t batch);

  /// Returns a number that no other batch has.
  std::uint64_t next_batch() { return batches_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// True if no buffer is in use.
  bool idle();

 private:
  BouncePool(GpuProcess& process, SegmentTable& segments, cuda::SharedGpu gpu)
      : process_(process), segments_(segments), gpu_(std::move(gpu)) {}
  bool may_take(std::size_t bytes, std::uint64_t batch);
  void trim(std::size_t bytes);
  void give_back(std::shared_ptr<BounceBuffer> buffer);

  GpuProcess& process_;
  SegmentTable& segments_;
  cuda::SharedGpu gpu_;
  int node_ = -1;
  std::mutex mutex_;
  std::vector<std::shared_ptr<BounceBuffer>> buffers_;
  std::atomic<std::uint64_t> batches_ = 0;
  cuda::Quiet::Watch watch_;
};

}  // namespace tutti
