// A GPU as the perf programs use it: memory, copies and a stream, by the driver that tutti takes, loaded at run time.
#pragma once

#include <cstddef>
#include <memory>

#include "tutti/tutti.h"

namespace perf {

/// Of one process. Errors end the program, and name the driver's function and code.
class Gpu {
 public:
  /// GPU 0 by TUTTI_CUDA_LIBRARY or libcuda.so.1. After the ranks were forked, not before.
  static std::shared_ptr<const Gpu> open();

  /// Makes it the calling thread's.
  void make_current() const;

  std::byte* allocate(std::size_t bytes) const;
  void free(std::byte* at) const;
  void to_device(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void to_host(std::byte* to, const std::byte* from, std::size_t bytes) const;
  tuttiStream_t make_stream() const;
  void synchronize(tuttiStream_t stream) const;
  void destroy(tuttiStream_t stream) const;

  /// Any other function of the driver, by CUDA's name; and what it returned.
  void* function(const char* name) const;
  void must(int status, const char* function) const;

 private:
  struct Functions;
  struct Key {};

 public:
  explicit Gpu(Key, std::shared_ptr<const Functions> functions);

 private:
  std::shared_ptr<const Functions> call_;
  void* context_ = nullptr;
};

}  // namespace perf
