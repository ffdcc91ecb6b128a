// What a program with a GPU does, by the functions of the fake driver: memory, streams, copies, graphs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/fake_cuda.h"

namespace tutti::testing {

class CudaUser {
 public:
  /// The driver is loaded and GPU `device` becomes the calling thread's.
  explicit CudaUser(const char* library, int device = 0) : library_(library) {
    call<int(unsigned)>("cuInit", 0u);
    call<int(CUctx_st**, int)>("cuDevicePrimaryCtxRetain", &context_, device);
    device_ = device;
    make_current();
  }
  ~CudaUser() {
    make_current();
    for (const auto at : allocated_) status<int(cuda::Address)>("cuMemFree", at);  // fails where a test broke the GPU
    for (auto* const stream : streams_) status<int(cuda::Stream)>("cuStreamDestroy", stream);
    status<int(CUctx_st*)>("cuCtxSetCurrent", static_cast<CUctx_st*>(nullptr));
    status<int(int)>("cuDevicePrimaryCtxRelease", device_);
  }
  CudaUser(const CudaUser&) = delete;
  CudaUser& operator=(const CudaUser&) = delete;

  /// In another thread, before it does anything else here.
  void make_current() const { call<int(CUctx_st*)>("cuCtxSetCurrent", context_); }

  template <class Type, class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    ASSERT_EQ(cuda_function<Type>(library_, name)(arguments...), 0) << name;
  }
  template <class Type, class... Arguments>
  int status(const char* name, Arguments... arguments) const {
    return cuda_function<Type>(library_, name)(arguments...);
  }

  /// From now on memory comes from the driver's pool, which other processes cannot map.
  void allocate_pooled(bool pooled) { pooled_ = pooled; }
  std::byte* allocate(std::size_t bytes) {
    cuda::Address at = 0;
    if (pooled_)
      call<int(cuda::Address*, std::size_t, cuda::Stream)>("cuMemAllocAsync", &at, bytes, cuda::Stream(nullptr));
    else
      call<int(cuda::Address*, std::size_t)>("cuMemAlloc", &at, bytes);
    allocated_.push_back(at);
    return reinterpret_cast<std::byte*>(at);  // NOLINT: an address
  }
  void free(const void* at) {
    const auto address = reinterpret_cast<cuda::Address>(at);
    std::erase(allocated_, address);
    call<int(cuda::Address)>("cuMemFree", address);
  }
  std::byte* allocate_managed(std::size_t bytes) {
    cuda::Address at = 0;
    call<int(cuda::Address*, std::size_t, unsigned)>("cuMemAllocManaged", &at, bytes, cuda::managed_global);
    allocated_.push_back(at);
    return reinterpret_cast<std::byte*>(at);  // NOLINT: an address
  }
  /// Ranges of `bytes` that the program maps itself, one behind the other: of each the GPUs that may access it, as
  /// bits.
  std::byte* allocate_mapped(std::size_t bytes, const std::vector<unsigned>& rights) {
    cuda::Address at = 0;
    call<int(cuda::Address*, std::size_t, const unsigned*, std::size_t)>("fakeMapRanges", &at, bytes, rights.data(),
                                                                         rights.size());
    for (std::size_t i = 0; i < rights.size(); ++i) allocated_.push_back(at + i * bytes);
    return reinterpret_cast<std::byte*>(at);  // NOLINT: an address
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    auto* const at = allocate(values.size() * sizeof(T));
    write(at, values);
    return reinterpret_cast<T*>(at);
  }
  /// Before anything that is queued from now on, on any stream: the copy itself may return before its end.
  template <class T>
  void write(void* at, const std::vector<T>& values) const {
    call<int(cuda::Address, const void*, std::size_t)>("cuMemcpyHtoD", reinterpret_cast<cuda::Address>(at),
                                                       static_cast<const void*>(values.data()),
                                                       values.size() * sizeof(T));
    synchronize(nullptr);
  }
  template <class T>
  std::vector<T> get(const T* at, std::size_t count) const {
    std::vector<T> values(count);
    call<int(void*, cuda::Address, std::size_t)>("cuMemcpyDtoH", static_cast<void*>(values.data()),
                                                 reinterpret_cast<cuda::Address>(at), count * sizeof(T));
    return values;
  }

  cuda::Stream stream(unsigned flags = cuda::stream_non_blocking) {
    cuda::Stream made = nullptr;
    call<int(cuda::Stream*, unsigned)>("cuStreamCreate", &made, flags);
    streams_.push_back(made);
    return made;
  }
  void synchronize(cuda::Stream stream) const { call<int(cuda::Stream)>("cuStreamSynchronize", stream); }

  void begin_capture(cuda::Stream stream) const {
    call<int(cuda::Stream, int)>("cuStreamBeginCapture", stream, cuda::capture_mode_global);
  }
  cuda::Graph end_capture(cuda::Stream stream) const {
    cuda::Graph graph = nullptr;
    call<int(cuda::Stream, cuda::Graph*)>("cuStreamEndCapture", stream, &graph);
    return graph;
  }
  cuda::GraphExec instantiate(cuda::Graph graph) const {
    cuda::GraphExec exec = nullptr;
    call<int(cuda::GraphExec*, cuda::Graph, unsigned long long)>("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
    return exec;
  }
  void replay(cuda::GraphExec exec, cuda::Stream stream) const {
    call<int(cuda::GraphExec, cuda::Stream)>("cuGraphLaunch", exec, stream);
  }
  void destroy(cuda::Graph graph) const { call<int(cuda::Graph)>("cuGraphDestroy", graph); }
  void destroy(cuda::GraphExec exec) const { call<int(cuda::GraphExec)>("cuGraphExecDestroy", exec); }

  /// `to` goes on behind what `from` holds now, and is captured if `from` is.
  void follow(cuda::Stream to, cuda::Stream from) const {
    cuda::Event event = nullptr;
    call<int(cuda::Event*, unsigned)>("cuEventCreate", &event, cuda::event_without_timing);
    call<int(cuda::Event, cuda::Stream)>("cuEventRecord", event, from);
    call<int(cuda::Stream, cuda::Event, unsigned)>("cuStreamWaitEvent", to, event, 0u);
    call<int(cuda::Event)>("cuEventDestroy", event);
  }

 private:
  const char* library_;
  int device_ = 0;
  bool pooled_ = false;
  CUctx_st* context_ = nullptr;
  std::vector<cuda::Address> allocated_;
  std::vector<cuda::Stream> streams_;
};

}  // namespace tutti::testing
