#include "perf/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "perf/launch.h"

namespace perf {

using Address = unsigned long long;

using Lookup = int (*)(const char*, void**, int, std::uint64_t, int*);

/// Functions of the CUDA driver, by its names.
struct Gpu::Functions {
  Lookup lookup = nullptr;
  int (*get_error_name)(int, const char**) = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(Address*, std::size_t) = nullptr;
  int (*free)(Address) = nullptr;
  int (*to_device)(Address, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, Address, std::size_t) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_synchronize)(void*) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
};

namespace {

constexpr int kCudaVersion = 12000;

void* found_by(Lookup lookup, const char* name) {
  void* found = nullptr;
  int state = 0;
  if (lookup(name, &found, kCudaVersion, 0, &state) != 0 || found == nullptr)
    fail(-1, fmt::format("--memory device: CUDA's driver has no {}", name));
  return found;
}

template <class Function>
void find(Lookup lookup, const char* name, Function& function) {
  function = reinterpret_cast<Function>(found_by(lookup, name));
}

}  // namespace

std::shared_ptr<const Gpu> Gpu::open(int device) {
  const char* const named = std::getenv("TUTTI_CUDA_LIBRARY");
  const std::string path = named == nullptr || *named == 0 ? "libcuda.so.1" : named;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(-1, fmt::format("--memory device: no CUDA driver: {}", ::dlerror()));
  const auto lookup = reinterpret_cast<Lookup>(::dlsym(library, "cuGetProcAddress_v2"));
  if (lookup == nullptr) fail(-1, "--memory device: CUDA's driver is older than CUDA 12.0");
  auto functions = std::make_shared<Functions>();
  functions->lookup = lookup;
  find(lookup, "cuGetErrorName", functions->get_error_name);
  find(lookup, "cuInit", functions->init);
  find(lookup, "cuDevicePrimaryCtxRetain", functions->retain);
  find(lookup, "cuCtxSetCurrent", functions->set_current);
  find(lookup, "cuMemAlloc", functions->allocate);
  find(lookup, "cuMemFree", functions->free);
  find(lookup, "cuMemcpyHtoD", functions->to_device);
  find(lookup, "cuMemcpyDtoH", functions->to_host);
  find(lookup, "cuStreamCreate", functions->stream_create);
  find(lookup, "cuStreamSynchronize", functions->stream_synchronize);
  find(lookup, "cuStreamDestroy", functions->stream_destroy);
  return std::make_shared<const Gpu>(Key{}, std::move(functions), device);
}

Gpu::Gpu(Key, std::shared_ptr<const Functions> functions, int device) : call_(std::move(functions)) {
  must(call_->init(0), "cuInit");
  must(call_->retain(&context_, device), "cuDevicePrimaryCtxRetain");
}

void Gpu::must(int status, const char* function) const {
  if (status == 0) return;
  const char* name = nullptr;
  if (call_->get_error_name(status, &name) != 0 || name == nullptr) name = "an unknown code";
  fail(-1, fmt::format("--memory device: {}: {} ({})", function, name, status));
}

void* Gpu::function(const char* name) const {
  return found_by(call_->lookup, name);
}

void Gpu::make_current() const {
  must(call_->set_current(context_), "cuCtxSetCurrent");
}

std::byte* Gpu::allocate(std::size_t bytes) const {
  Address at = 0;
  must(call_->allocate(&at, bytes), "cuMemAlloc");
  return reinterpret_cast<std::byte*>(at);
}

void Gpu::free(std::byte* at) const {
  must(call_->free(reinterpret_cast<Address>(at)), "cuMemFree");
}

void Gpu::to_device(std::byte* to, const std::byte* from, std::size_t bytes) const {
  must(call_->to_device(reinterpret_cast<Address>(to), from, bytes), "cuMemcpyHtoD");
  synchronize(nullptr);  // the copy may return before it has ended, and other streams do not wait for it
}

void Gpu::to_host(std::byte* to, const std::byte* from, std::size_t bytes) const {
  must(call_->to_host(to, reinterpret_cast<Address>(from), bytes), "cuMemcpyDtoH");
}

tuttiStream_t Gpu::make_stream() const {
  constexpr unsigned kNonBlocking = 1;
  void* stream = nullptr;
  must(call_->stream_create(&stream, kNonBlocking), "cuStreamCreate");
  return tuttiCudaStream(stream);
}

void Gpu::synchronize(tuttiStream_t stream) const {
  must(call_->stream_synchronize(stream), "cuStreamSynchronize");
}

void Gpu::destroy(tuttiStream_t stream) const {
  must(call_->stream_destroy(stream), "cuStreamDestroy");
}

}  // namespace perf
