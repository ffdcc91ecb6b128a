// One call on device memory that the host carries out: the input is copied to host memory on the caller's stream, the
// call runs there, and the output is copied back, while the stream waits.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "call/request.h"
#include "gpu/stream_call.h"

namespace tutti {

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

class HostStagedCall final : public StreamCall {
 public:
  HostStagedCall(std::shared_ptr<BouncePool> pool, cuda::Stream stream, HostStagedBuffers buffers)
      : StreamCall(std::move(pool), stream), buffers_(std::move(buffers)) {}

  void bind(Request& request) const override;
  void bind(PeerRequest& request) const override;

 private:
  std::size_t host_bytes() const override { return output_at() + buffers_.output.bytes(); }
  Result<void> queue_before_signal() override { return copy_extents(buffers_.input, buffer().data(), /*in=*/true); }
  Result<void> queue_after_wait() override { return copy_extents(buffers_.output, output(), /*in=*/false); }
  Result<void> copy_extents(const HostStagedBuffer& caller, std::byte* host, bool in) const;
  std::byte* output() const { return buffer().data() + output_at(); }
  std::size_t output_at() const;

  const HostStagedBuffers buffers_;
};

}  // namespace tutti
