// Memory of the host through which calls on device memory go where no kernel serves them.
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

/// Room for one call at a time, which peers can map and GPUs copy from and to; and two words by which a stream and the
/// host wait for each other. A use is free again once the host and the stream are both done with it.
class BounceBuffer {
 public:
  /// The context must be current. Errors: system, cuda.
  static Result<std::shared_ptr<BounceBuffer>> make(SegmentTable& segments, const cuda::SharedGpu& gpu,
                                                    std::size_t bytes);
  ~BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;

  std::byte* data() const { return at_; }
  std::size_t bytes() const { return bytes_; }

  // ---- Of the thread that queues the call; the context must be current, but for take ----

  /// Begins a use, for the batch of that number.
  void take(std::uint64_t batch);
  std::uint64_t batch() const { return batch_; }
  /// Queues: says that what was queued before has happened. Phases of a use are numbered upwards. Errors: cuda.
  Result<void> signal(cuda::Stream stream, std::uint32_t phase = 0);
  /// Queues: waits until the host has let phase `phase` go. Errors: cuda.
  Result<void> await(cuda::Stream stream, std::uint32_t phase = last_phase);
  /// Nothing more of this use will be queued behind what `stream` holds now. Errors: cuda.
  Result<void> seal(cuda::Stream stream);

  // ---- Any thread ----

  static constexpr std::uint32_t last_phase = (1u << 12) - 1;

  bool landed(std::uint32_t phase = 0) const;  ///< the signal has come
  void let_go(std::uint32_t phase);            ///< lets the stream go on as far as that
  void release();                              ///< the host is done: lets the stream go on to its end

  /// Pinned memory for the host to tell kernels of this use where the buffers of all ranks are, and as those see it.
  device::PeerBuffers* table() const;
  const device::PeerBuffers* device_table() const;

  /// No use is under way; so it is too when the GPU does not run anything any more. The context must be current.
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

/// The buffers of one rank: used again and again, as many as calls are under way. Any thread.
class BouncePool {
 public:
  /// Errors: invalid_usage (streams of this GPU cannot wait for memory), cuda.
  static Result<std::shared_ptr<BouncePool>> open(GpuProcess& process, SegmentTable& segments,
                                                  const cuda::SharedGpu& gpu);
  /// Waits for what runs, at most a second; what does not end keeps its memory for ever.
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  const cuda::SharedGpu& gpu() const { return gpu_; }

  /// A buffer of at least `bytes`, taken for the batch of that number; null: there are enough under way, ask again. The
  /// context must be current. Errors: system, cuda.
  Result<std::shared_ptr<BounceBuffer>> lease(std::size_t bytes, std::uint64_t batch);

  /// A number that no other batch has.
  std::uint64_t next_batch() { return batches_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Nothing is under way.
  bool idle();

 private:
  BouncePool(GpuProcess& process, SegmentTable& segments, cuda::SharedGpu gpu)
      : process_(process), segments_(segments), gpu_(std::move(gpu)) {}
  bool may_take(std::size_t bytes, std::uint64_t batch);
  void trim(std::size_t bytes);

  GpuProcess& process_;
  SegmentTable& segments_;
  cuda::SharedGpu gpu_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<BounceBuffer>> buffers_;
  std::atomic<std::uint64_t> batches_ = 0;
};

}  // namespace tutti
