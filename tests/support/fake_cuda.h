// A CUDA driver in memory, as a library of its own: GPUs are host memory, kernels run on the CPU, and tests say what
// fails. Loaded in place of libcuda.so.1 (TUTTI_CUDA_LIBRARY); a test in the same process talks to it by fake_cuda().
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cuda/driver_types.h"

namespace tutti::testing {

/// Runs a kernel to its end and returns the status that its context has from then on (0: none). `argument`: the first
/// parameter's bytes as they were at the launch.
using FakeKernel =
    std::function<cuda::Status(const std::string& name, const std::byte* argument, unsigned blocks, unsigned threads)>;

/// What only tests call. Any thread.
class FakeCuda {
 public:
  virtual ~FakeCuda() = default;

  /// Before anybody else uses it; 1 without. All GPUs can reach each other's memory.
  virtual void set_devices(int count) = 0;
  /// This process's GPU 0 is the `first` one of the machine, the next ones follow; 0 without. Other processes may use
  /// the same ones.
  virtual void set_first_device(int first) = 0;
  /// Whether processes share GPUs by MPS; false without.
  virtual void set_mps(bool on) = 0;
  /// How many blocks fit a GPU at once: more in a cooperative launch is an error.
  virtual void set_blocks_max(unsigned blocks) = 0;
  /// One queue for all streams, where nothing begins before what was queued earlier has ended, whatever the stream: as
  /// streams of a GPU whose hardware queues are all in use.
  virtual void set_one_queue(bool one) = 0;
  /// How many blocks other kernels occupy for now. Kernels whose blocks wait for each other, or for other kernels, run
  /// when there is room for all their blocks; others need room for one.
  virtual void occupy(unsigned blocks) = 0;
  /// Whether what is allocated from now on can be mapped by other processes; false without. GPUs of one number are then
  /// one GPU to all of them.
  virtual void set_shareable(bool can) = 0;
  /// Whether streams can wait for memory and write to it; true without.
  virtual void set_memory_operations(bool can) = 0;
  /// How much a stream's queue holds; 0, as without: there is no end. From then on a thread that queues on a full
  /// stream waits for room, and one that frees memory waits for all streams; and as in the real one it holds the
  /// driver's lock meanwhile, for which all calls of other threads wait.
  virtual void set_queue_max(std::size_t most) = 0;
  /// Whether a thread waits while it holds the driver's lock.
  virtual bool is_locked() = 0;
  /// What launches run instead of plans as plan_kernel.h does. Kernels of all names are found.
  virtual void set_kernel(FakeKernel kernel) = 0;
  /// Called by the thread that launches a kernel, before anything else; null: nothing.
  virtual void at_launch(void (*hook)()) = 0;

  /// The call of `function` ("cuMemAlloc") after the next `after` ones returns `status`; once, or from then on.
  virtual void fail(const std::string& function, cuda::Status status, int after = 0, bool for_ever = false) = 0;
  virtual void forgive() = 0;  ///< nothing fails any more
  virtual int calls(const std::string& function) = 0;
  /// What a sticky error does to a GPU: every later call about it returns `status`.
  virtual void break_device(int device, cuda::Status status) = 0;

  /// While held, nothing that is queued begins.
  virtual void hold() = 0;
  virtual void release() = 0;

  struct Live {
    std::size_t device_bytes = 0;
    int allocations = 0;  ///< of device and pinned memory
    int streams = 0;
    int events = 0;
    int registrations = 0;  ///< of memory of the host
    int mapped = 0;         ///< memory of other processes
    int libraries = 0;
    int user_objects = 0;
    int contexts_retained = 0;
    int misuse = 0;  ///< calls that a real driver may punish: from a destroy callback, of what was destroyed
    bool operator==(const Live&) const = default;
  };
  virtual Live live() = 0;
};

/// In place of the fake where there is a GPU: nothing can be asked of it.
class NoFake final : public FakeCuda {
 public:
  void set_devices(int) override {}
  void set_first_device(int) override {}
  void set_mps(bool) override {}
  void set_blocks_max(unsigned) override {}
  void set_one_queue(bool) override {}
  void occupy(unsigned) override {}
  void set_shareable(bool) override {}
  void set_memory_operations(bool) override {}
  void set_queue_max(std::size_t) override {}
  bool is_locked() override { return false; }
  void set_kernel(FakeKernel) override {}
  void at_launch(void (*)()) override {}
  void fail(const std::string&, cuda::Status, int, bool) override {}
  void forgive() override {}
  int calls(const std::string&) override { return 1; }
  void break_device(int, cuda::Status) override {}
  void hold() override {}
  void release() override {}
  Live live() override { return {}; }
};

/// Of the library at `path`, loaded if need be; it stays.
inline FakeCuda& fake_cuda(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* const get = reinterpret_cast<FakeCuda* (*)()>(::dlsym(library, "tutti_fake_cuda"));
  static NoFake none;
  if (get == nullptr) return none;
  return *get();
}

/// A function of a driver by CUDA's name, of the type that the caller vouches for.
template <class Type>
Type* cuda_function(const char* path, const char* name) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  using Lookup = int(const char*, void**, int, std::uint64_t, int*);
  auto* const lookup = reinterpret_cast<Lookup*>(::dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  int state = 0;
  lookup(name, &found, 13000, 0, &state);
  return reinterpret_cast<Type*>(found);
}

}  // namespace tutti::testing
