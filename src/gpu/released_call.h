// A call that this rank's kernels carry out, each queued between a wait for the host and a signal to it: see
// GpuPeerCall, which releases them.
#pragma once

#include <memory>

#include "gpu/gpu_peers.h"
#include "gpu/stream_call.h"

namespace tutti {

class ReleasedCall final : public StreamCall {
 public:
  ReleasedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, std::shared_ptr<PeerCallSetup> setup)
      : StreamCall(std::move(pool), stream), setup_(std::move(setup)) {}

  /// The call stays on the caller's buffers, or on what GpuPeers has chosen in their place.
  void bind(Request&) const override {}
  void bind(PeerRequest&) const override {}

  const PeerCallSetup& setup() const { return *setup_; }
  /// Releases kernel `kernel`, from 1. The table must be filled before the first kernel is released.
  void let_go(std::uint32_t kernel) const { buffer().let_go(kernel); }
  device::PeerBuffers* table() const { return buffer().table(); }

 private:
  Result<bool> ready() override { return setup_->of->choose_buffers(*setup_); }
  std::size_t host_bytes() const override { return 0; }
  Result<void> queue_before_signal() override;
  Result<void> queue_before_wait() override;
  Result<void> queue_after_wait() override;
  Result<void> copy_if_apart(std::byte* to, const std::byte* from, std::size_t bytes) const;

  const std::shared_ptr<PeerCallSetup> setup_;
};

}  // namespace tutti
