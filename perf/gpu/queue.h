// GPU operations other than tutti's calls, for comparison with these calls.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "perf/gpu.h"

namespace perf {

/// Must be destroyed before the captured communicators: they wait for their graphs.
using GpuGraph = std::unique_ptr<void, std::function<void(void*)>>;

/// A stream, or several that are waited for and captured together. Errors end the program.
class GpuQueue {
 public:
  /// `gpu` must be current and outlive this. `streams`: at least one.
  explicit GpuQueue(const Gpu& gpu, std::size_t streams = 1);
  ~GpuQueue();
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  /// Streams are reused in turn if there are fewer than `number`.
  tuttiStream_t stream(std::size_t number = 0) const { return streams_[number % streams_.size()]; }
  /// Waits for all streams.
  void wait() const;

  /// From device memory to device memory.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;
  /// Loads a kernel from PTX text; it stays loaded.
  void* load(const char* ptx, const char* entry);
  /// Launches a loaded kernel with one argument.
  void launch(void* kernel, bool cooperative, unsigned blocks, unsigned threads, void* argument) const;
  /// A graph of everything that `queue_all` queues on any of the streams; nothing runs during the capture.
  GpuGraph capture(const std::function<void()>& queue_all) const;
  void replay(const GpuGraph& graph) const;

 private:
  void order(std::size_t before, std::size_t after) const;
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const;

  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                         void**);
  using LaunchCooperative = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                    void**);

  const Gpu& gpu_;
  std::vector<tuttiStream_t> streams_;
  std::vector<void*> events_;  // one per stream, for captures
  Launch launch_ = nullptr;    // looked up once, because launches are what is timed
  LaunchCooperative launch_cooperative_ = nullptr;
};

}  // namespace perf
