#include "perf/gpu/queue.h"

namespace perf {

using Address = unsigned long long;

GpuQueue::GpuQueue(const Gpu& gpu) : gpu_(gpu), stream_(gpu.make_stream()) {}

GpuQueue::~GpuQueue() {
  gpu_.destroy(stream_);
}

/// The function of that name, which has these parameters.
template <class... Arguments>
void GpuQueue::call(const char* name, Arguments... arguments) const {
  using Function = int (*)(Arguments...);
  gpu_.must(reinterpret_cast<Function>(gpu_.function(name))(arguments...), name);
}

void GpuQueue::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
  call<Address, Address, std::size_t, void*>("cuMemcpyDtoDAsync", reinterpret_cast<Address>(to),
                                             reinterpret_cast<Address>(from), bytes, stream_);
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
    gpu_.must(launch_cooperative_(kernel, blocks, 1, 1, threads, 1, 1, 0, stream_, arguments),
              "cuLaunchCooperativeKernel");
  else
    gpu_.must(launch_(kernel, blocks, 1, 1, threads, 1, 1, 0, stream_, arguments, nullptr), "cuLaunchKernel");
}

void* GpuQueue::capture(const std::function<void()>& queue_all) const {
  constexpr int relaxed = 2;
  void* graph = nullptr;
  void* made = nullptr;
  call<void*, int>("cuStreamBeginCapture", stream_, relaxed);
  queue_all();
  call<void*, void**>("cuStreamEndCapture", stream_, &graph);
  call<void**, void*, unsigned long long>("cuGraphInstantiateWithFlags", &made, graph, 0);
  return made;
}

void GpuQueue::replay(void* graph) const {
  call<void*, void*>("cuGraphLaunch", graph, stream_);
}

}  // namespace perf
