// One call on device memory that the host carries out: copied to memory of the host on the caller's stream, run there,
// and copied back, while the stream waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "call/request.h"
#include "gpu/bounce_buffer.h"

namespace tutti {

struct PeerCallSetup;

/// Part of a buffer, from its start.
struct Extent {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

/// One buffer of a call: what is copied of it, ascending, none next to each other.
struct HostStagedBuffer {
  std::byte* at = nullptr;
  std::vector<Extent> extents;
  std::size_t bytes() const { return extents.empty() ? 0 : extents.back().begin + extents.back().bytes; }
};

/// What a call reads and writes on this rank.
struct HostStagedBuffers {
  HostStagedBuffer input;
  HostStagedBuffer output;
};
HostStagedBuffers host_staged_buffers(const Request& request, Rank rank, int ranks);
HostStagedBuffers host_staged_buffers(const PeerRequest& request);

/// Shared by who queues it and who runs it on the host.
class HostStagedCall final : public DeviceCall {
 public:
  HostStagedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, HostStagedBuffers buffers)
      : pool_(std::move(pool)), stream_(stream), buffers_(std::move(buffers)) {}
  /// One that kernels of this rank carry out, when the host says so: see GpuPeerCall.
  HostStagedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, std::shared_ptr<const PeerCallSetup> peers)
      : pool_(std::move(pool)), stream_(stream), peers_(std::move(peers)) {}
  ~HostStagedCall() override;
  HostStagedCall(const HostStagedCall&) = delete;
  HostStagedCall& operator=(const HostStagedCall&) = delete;

  // ---- Of the thread that queues; it must not call them again after an error ----

  /// Queues the copy to the host, and word of it. False: no stage is free, ask again. Errors: system, cuda.
  Result<bool> queue_input(std::uint64_t batch);
  /// The same of a call that the host may begin at once: there is nothing to queue.
  Result<bool> queue_nothing(std::uint64_t batch);
  /// Queues the wait for the host, and the copy back; or kernels, each with a wait before and word of it behind.
  /// Errors: cuda.
  Result<void> queue_output();
  /// Nothing more will be queued.
  void give_up();

  // ---- Of the one that runs it on the host ----

  /// The input is here; kernel `kernel`, from 1, has ended.
  bool landed(std::uint32_t kernel = 0) const;
  /// Kernel `kernel` may begin; the table says where buffers are from the first one on.
  void let_go(std::uint32_t kernel) const { buffer_->let_go(kernel); }
  device::PeerBuffers* table() const { return buffer_->table(); }
  /// In memory of the host, laid out as the caller's. Requires landed().
  std::byte* input() const { return buffer_->data(); }
  std::byte* output() const { return buffer_->data() + output_at(); }
  /// Not null: kernels of this rank carry the call out.
  const PeerCallSetup* peers() const { return peers_.get(); }

  void make(HeldOperation& made, Communicator& communicator, Request& request) override;
  bool through_host() const override { return true; }
  std::byte* transfer_buffer() const override;
  /// The output is here, or never will be: the stream may go on.
  void finish() override;

 private:
  Result<bool> take_buffer(std::uint64_t batch, bool signals);
  Result<void> copy(const HostStagedBuffer& buffer, std::byte* host, bool in) const;
  Result<void> copy_buffer(std::byte* to, const std::byte* from, std::size_t bytes) const;
  Result<void> queue_kernels() const;
  std::size_t output_at() const;

  const std::shared_ptr<BouncePool> pool_;
  cuda::Stream stream_;
  const HostStagedBuffers buffers_;
  const std::shared_ptr<const PeerCallSetup> peers_;  // null: through the host
  std::shared_ptr<BounceBuffer> buffer_;
  bool sealed_ = false;              // by the thread that queues
  bool signals_ = false;             // the host waits for word of the stream
  std::atomic<bool> begun_ = false;  // there is a stage, and nobody changes the above any more
  std::atomic<bool> finished_ = false;
  std::atomic<bool> released_ = false;
};

/// A call on `stream`, in a communicator whose context is ready for it: GpuContext::ready_to_stage. Errors: as of
/// GpuPeers::prepare.
Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const Request& request, cuda::Stream stream);
Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const PeerRequest& request,
                                              cuda::Stream stream);

}  // namespace tutti
