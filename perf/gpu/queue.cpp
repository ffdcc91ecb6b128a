#include "perf/gpu/queue.h"

namespace perf {

using Address = unsigned long long;

/// The function of that name with these parameters.
template <class... Arguments>
void GpuQueue::call(const char* name, Arguments... arguments) const {
  using Function = int (*)(Arguments...);
  gpu_.must(reinterpret_cast<Function>(gpu_.function(name))(arguments...), name);
}

GpuQueue::GpuQueue(const Gpu& gpu, std::size_t streams) : gpu_(gpu) {
  constexpr unsigned without_timing = 2;
  for (std::size_t i = 0; i < streams; ++i) {
    streams_.push_back(gpu.make_stream());
    call<void**, unsigned>("cuEventCreate", &events_.emplace_back(), without_timing);
  }
}

GpuQueue::~GpuQueue() {
  for (void* const event : events_) call<void*>("cuEventDestroy", event);
  for (auto* const stream : streams_) gpu_.destroy(stream);
}

void GpuQueue::wait() const {
  for (auto* const stream : streams_) gpu_.synchronize(stream);
}

/// Makes everything queued on stream `after` from now on wait for everything queued on `before` so far.
void GpuQueue::order(std::size_t before, std::size_t after) const {
  call<void*, void*>("cuEventRecord", events_[before], streams_[before]);
  call<void*, void*, unsigned>("cuStreamWaitEvent", streams_[after], events_[before], 0);
}

void GpuQueue::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
  call<Address, Address, std::size_t, void*>("cuMemcpyDtoDAsync", reinterpret_cast<Address>(to),
                                             reinterpret_cast<Address>(from), bytes, streams_[0]);
}

void* GpuQueue::load(const char* ptx, const char* entry) {
  launch_ = reinterpret_cast<Launch>(gpu_.function("cuLaunchKernel"));
  launch_cooperative_ = reinterpret_cast<LaunchCooperative>(gpu_.function("cuLaunchCooperativeKernel"));
  void* module = nullptr;
  void* function = nullptr;
  call<void**, const void*>("cuModuleLoadData", &module, ptx);
  call<void**, void*, const char*>("cuModuleGetFunction", &function, module, entry);
  return function;
}

void GpuQueue::launch(void* kernel, bool cooperative, unsigned blocks, unsigned threads, void* argument) const {
  void* arguments[] = {argument};
  if (cooperative)
    gpu_.must(launch_cooperative_(kernel, blocks, 1, 1, threads, 1, 1, 0, streams_[0], arguments),
              "cuLaunchCooperativeKernel");
  else
    gpu_.must(launch_(kernel, blocks, 1, 1, threads, 1, 1, 0, streams_[0], arguments, nullptr), "cuLaunchKernel");
}

GpuGraph GpuQueue::capture(const std::function<void()>& queue_all) const {
  constexpr int relaxed = 2;
  void* graph = nullptr;
  void* made = nullptr;
  call<void*, int>("cuStreamBeginCapture", streams_[0], relaxed);
  for (std::size_t i = 1; i < streams_.size(); ++i) order(0, i);
  queue_all();
  for (std::size_t i = 1; i < streams_.size(); ++i) order(i, 0);
  call<void*, void**>("cuStreamEndCapture", streams_[0], &graph);
  call<void**, void*, unsigned long long>("cuGraphInstantiateWithFlags", &made, graph, 0);
  call<void*>("cuGraphDestroy", graph);
  return {made, [this](void* captured) { call<void*>("cuGraphExecDestroy", captured); }};
}

void GpuQueue::replay(const GpuGraph& graph) const {
  call<void*, void*>("cuGraphLaunch", graph.get(), streams_[0]);
}

}  // namespace perf
