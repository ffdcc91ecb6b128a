// A memory mapping with one owner.
#pragma once

#include <cstddef>
#include <utility>

#include "base/error.h"

namespace tutti {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  /// Maps the first `bytes` of `fd`, shared, readable and writable; 2 MiB aligned when that large. Errors: system.
  static Result<Mapping> shared(int fd, std::size_t bytes);

  /// As `shared`, in place of the pages that are there now. `at` and `bytes` are whole pages.
  static Result<Mapping> shared_over(std::byte* at, int fd, std::size_t bytes);
  /// Puts private pages with the same content in the mapping's place, and leaves them to their owner. Errors: system;
  /// everything stays as it is then.
  Result<void> turn_private();

  /// Pages that are touched for the first time from now on, by any process, lie on this NUMA node as long as it has
  /// memory left. Of a shared mapping the memory itself keeps that, not the mapping. Errors: system (EPERM in some
  /// containers, EINVAL where the node has no memory).
  Result<void> prefer_node(int node);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  Mapping(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Whether the kernel does not know a call, or a seccomp filter (of a container) forbids it: what is only advice, or
/// has another way, goes on without.
bool is_not_offered(int error);

/// Gets the pages of [at, at + bytes) now, so that a lack of memory is an error and no signal at a later touch. False:
/// the kernel does not offer that (before 5.14, or a filter). Errors: system.
Result<bool> populate_now(std::byte* at, std::size_t bytes);

/// Copies whole pages, whatever lies in them: pages around a buffer of malloc hold parts that AddressSanitizer's
/// memcpy, or its replacement in a program that uses it, must not read.
void copy_pages(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace tutti
