// What a GPU is given to do beside tutti's calls, to compare these with.
#pragma once

#include <cstddef>
#include <functional>

#include "perf/gpu.h"

namespace perf {

/// A stream. Errors end the program.
class GpuQueue {
 public:
  /// `gpu` must be current, and live as long.
  explicit GpuQueue(const Gpu& gpu);
  ~GpuQueue();
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  tuttiStream_t stream() const { return stream_; }
  void wait() const { gpu_.synchronize(stream_); }

  /// From device memory to device memory.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;
  /// A kernel of a text of PTX; stays loaded.
  void* load(const char* ptx, const char* entry);
  /// A kernel that was loaded, with one argument.
  void launch(void* kernel, bool cooperative, unsigned blocks, unsigned threads, void* argument) const;
  /// A graph of what `queue_all` queues, which does not run meanwhile. Stays.
  void* capture(const std::function<void()>& queue_all) const;
  void replay(void* graph) const;

 private:
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const;

  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                         void**);
  using LaunchCooperative = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                    void**);

  const Gpu& gpu_;
  tuttiStream_t stream_;
  Launch launch_ = nullptr;  // looked up once, for launches are what is timed
  LaunchCooperative launch_cooperative_ = nullptr;
};

}  // namespace perf
