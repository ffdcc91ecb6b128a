// Reads memory of another process that is not mapped in this process (CMA), and the memory that data is pulled into
// until it is reduced.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/host.h"

namespace tutti {

/// Copies from address `from` of the process. Errors: remote (it has ended or become another program, forbids access,
/// or has no such memory).
Result<void> pull(const ForeignProcess& process, const std::byte* from, std::span<std::byte> into);

/// Page aligned, on huge pages if the system gives them: a pull then looks up fewer pages.
class PullBuffer {
 public:
  /// At least `bytes`, not touched. Only for an empty buffer. Errors: system.
  Result<void> allocate(std::size_t bytes);

  std::byte* data() const { return at_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* at) const { std::free(at); }
  };
  std::unique_ptr<std::byte[], Free> at_;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
