// Memory into which data of other processes is pulled until it is reduced.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace tutti {

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
