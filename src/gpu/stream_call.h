// A call on device memory for which its stream waits: between a signal to the host and a wait for it, the host carries
// the call out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "call/request.h"
#include "gpu/bounce_buffer.h"

namespace tutti {

/// Shared by the thread that queues the call and the proxy that carries it out.
class StreamCall : public QueuedCall {
 public:
  StreamCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream) : pool_(std::move(pool)), stream_(stream) {}
  ~StreamCall() override;
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // ---- For the thread that queues; after an error it must not call these again ----

  /// Queues what comes before the host's part, and a signal when it is done. False: no bounce buffer is free, or peers
  /// have yet to map the buffers of a call that is too large for the arena; try again later. Errors: system, cuda.
  Result<bool> queue_input(std::uint64_t batch);
  /// As queue_input, for a call that the host may begin at once: queues nothing.
  Result<bool> queue_nothing(std::uint64_t batch);
  /// Queues the wait for the host, and what comes before and after it. Errors: cuda.
  Result<void> queue_output();
  /// Nothing more will be queued for this call.
  void give_up();

  // ---- For the proxy ----

  bool landed() const override { return landed(0); }
  /// True if kernel number `kernel`, from 1, has ended; 0: if the stream has come to the call.
  bool landed(std::uint32_t kernel) const {
    return begun_.load(std::memory_order_acquire) && (!signals_ || buffer_->landed(kernel));
  }
  /// Lets the stream go on: the output is complete, or never will be.
  void finish() override;

 protected:
  /// Whether the call can be queued. False: try again later.
  virtual Result<bool> ready() { return true; }
  virtual std::size_t host_bytes() const = 0;
  virtual Result<void> queue_before_signal() = 0;
  virtual Result<void> queue_before_wait() { return {}; }
  virtual Result<void> queue_after_wait() = 0;

  const cuda::Gpu& gpu() const { return *pool_->gpu(); }
  cuda::Stream stream() const { return stream_; }
  BounceBuffer& buffer() const { return *buffer_; }

 private:
  Result<bool> take_buffer(std::uint64_t batch, bool signals);

  const std::shared_ptr<BouncePool> pool_;
  cuda::Stream stream_;
  std::shared_ptr<BounceBuffer> buffer_;
  bool sealed_ = false;              // the stream's part has ended; used by the thread that queues
  bool signals_ = false;             // the host waits for the stream's signal
  std::atomic<bool> begun_ = false;  // buffer_ and signals_ are set, and do not change any more
  std::atomic<bool> finished_ = false;
  std::atomic<bool> released_ = false;
};

}  // namespace tutti
