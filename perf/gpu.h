// A GPU for the perf programs: memory, copies and a stream, through the driver that tutti uses, loaded at run time.
#pragma once

#include <cstddef>
#include <memory>

#include "tutti/tutti.h"

namespace perf {

/// The GPU of one process. Errors end the program with the driver's function and code.
class Gpu {
 public:
  /// Through TUTTI_CUDA_LIBRARY or libcuda.so.1. To be called after the ranks were forked, not before.
  static std::shared_ptr<const Gpu> open(int device = 0);

  /// Makes its context current in the calling thread.
  void make_current() const;

  std::byte* allocate(std::size_t bytes) const;
  void free(std::byte* at) const;
  void to_device(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void to_host(std::byte* to, const std::byte* from, std::size_t bytes) const;
  tuttiStream_t make_stream() const;
  void synchronize(tuttiStream_t stream) const;
  void destroy(tuttiStream_t stream) const;

  /// Any other function of the driver, by CUDA's name; and a check of its result.
  void* function(const char* name) const;
  void must(int status, const char* function) const;

 private:
  struct Functions;
  struct Key {};

 public:
  Gpu(Key, std::shared_ptr<const Functions> functions, int device);

 private:
  std::shared_ptr<const Functions> call_;
  void* context_ = nullptr;
};

}  // namespace perf
