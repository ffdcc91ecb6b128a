// One call on device memory that the host carries out: the input is copied to host memory on the caller's stream, the
// call runs there, and the output is copied back, while the stream waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "call/request.h"
#include "gpu/bounce_buffer.h"

namespace tutti {

struct PeerCallSetup;

/// Part of a buffer; `begin` counts from the start of the buffer.
struct Extent {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  bool operator==(const Extent&) const = default;
};

/// One buffer of a call, and the parts of it that are copied: ascending, with gaps between them.
struct HostStagedBuffer {
  std::byte* at = nullptr;
  std::vector<Extent> extents;
  std::size_t bytes() const { return extents.empty() ? 0 : extents.back().begin + extents.back().bytes; }
};

/// The buffers that a call reads and writes on this rank.
struct HostStagedBuffers {
  HostStagedBuffer input;
  HostStagedBuffer output;
};
HostStagedBuffers host_staged_buffers(const Request& request, Rank rank, int ranks);
HostStagedBuffers host_staged_buffers(const PeerRequest& request);

/// Shared by the thread that queues the call and the proxy that runs it on the host.
class HostStagedCall final : public DeviceCall {
 public:
  HostStagedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, HostStagedBuffers buffers)
      : pool_(std::move(pool)), stream_(stream), buffers_(std::move(buffers)) {}
  /// A call that this rank's kernels carry out when the host releases them: see GpuPeerCall.
  HostStagedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, std::shared_ptr<PeerCallSetup> peers)
      : pool_(std::move(pool)), stream_(stream), peers_(std::move(peers)) {}
  ~HostStagedCall() override;
  HostStagedCall(const HostStagedCall&) = delete;
  HostStagedCall& operator=(const HostStagedCall&) = delete;

  // ---- For the thread that queues; after an error it must not call these again ----

  /// Queues the copy to the host and a signal when it is done. False: no bounce buffer is free, or peers have yet to
  /// map the buffers of a call that is too large for the arena; try again later. Errors: system, cuda.
  Result<bool> queue_input(std::uint64_t batch);
  /// As queue_input, for a call that the host may begin at once: queues nothing.
  Result<bool> queue_nothing(std::uint64_t batch);
  /// Queues the wait for the host and the copy back; before them the kernels, if there are any, each between a wait for
  /// the host and a signal to it. Errors: cuda.
  Result<void> queue_output();
  /// Nothing more will be queued for this call.
  void give_up();

  // ---- For the proxy ----

  /// True if kernel number `kernel`, from 1, has ended; 0: if the input is in host memory.
  bool landed(std::uint32_t kernel = 0) const;
  /// Releases kernel `kernel`. The table must be filled before the first kernel is released.
  void let_go(std::uint32_t kernel) const { buffer_->let_go(kernel); }
  device::PeerBuffers* table() const { return buffer_->table(); }
  /// In host memory, laid out as the caller's buffers. Requires landed().
  std::byte* input() const { return buffer_->data(); }
  std::byte* output() const { return buffer_->data() + output_at(); }
  /// Not null: this rank's kernels carry the call out.
  const PeerCallSetup* peers() const { return peers_.get(); }

  void make(HeldOperation& made, Communicator& communicator, Request& request) override;
  bool through_host() const override { return true; }
  std::byte* transfer_buffer() const override;
  /// Lets the stream go on: the output is complete, or never will be.
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
  const std::shared_ptr<PeerCallSetup> peers_;  // null: through the host
  std::shared_ptr<BounceBuffer> buffer_;
  bool sealed_ = false;              // the stream's part has ended; used by the thread that queues
  bool signals_ = false;             // the host waits for the stream's signal
  std::atomic<bool> begun_ = false;  // buffer_ and signals_ are set, and do not change any more
  std::atomic<bool> finished_ = false;
  std::atomic<bool> released_ = false;
};

/// Makes a call on `stream`. The communicator's context must be ready: see GpuContext::ready_to_stage. Errors: as
/// GpuPeers::prepare.
Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const Request& request, cuda::Stream stream);
Result<std::shared_ptr<HostStagedCall>> stage(Communicator& communicator, const PeerRequest& request,
                                              cuda::Stream stream);

}  // namespace tutti
