// What calls need for which their streams wait for the host, made when the first one is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "cuda/resources.h"
#include "gpu/bounce_buffer.h"
#include "gpu/gpu_peers.h"

namespace tutti {

class Process;
class Stream;

class Staging {
 public:
  using OpenPeers = std::function<Result<std::shared_ptr<GpuPeers>>()>;

  /// Makes what is missing. `open_peers`: null where no kernels access peers' memory. Errors: invalid_usage (streams of
  /// this GPU cannot wait for memory), cuda, system.
  Result<void> make(Process& process, const cuda::SharedGpu& gpu, const OpenPeers& open_peers);
  /// Whether all that was queued has ended. Any thread.
  bool idle() const;
  /// Kernels end soon. Any thread.
  void abort();

  GpuPeers& peers() const { return *peers_; }
  const std::shared_ptr<BouncePool>& pool() const { return pool_; }
  /// The host stream that carries these calls out, one after another.
  const std::shared_ptr<Stream>& proxy() const { return proxy_; }
  void end_proxy() { proxy_.reset(); }

 private:
  std::shared_ptr<GpuPeers> peers_;
  std::atomic<GpuPeers*> peers_made_ = nullptr;  // `peers_`, for threads other than the one that makes calls
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<BouncePool> pool_;
  std::shared_ptr<Stream> proxy_;
};

}  // namespace tutti
