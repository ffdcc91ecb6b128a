// The kernels of one GPU, all loaded before the first of them runs: loading one while others wait for each other hangs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "cuda/resources.h"
#include "kernels/entries.h"

namespace tutti::cuda {

class Kernels {
 public:
  /// `image`: a fatbin, cubin or PTX with all entries of kernels/entries.h; read during the call only.
  /// Errors: cuda (no code for this GPU, an entry that is missing).
  static Result<std::shared_ptr<const Kernels>> load(const SharedGpu& gpu, std::span<const std::byte> image);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  Function function(DataType type) const { return functions_[static_cast<std::size_t>(type)]; }
  /// How many blocks of any of them the GPU holds at once.
  int blocks_max() const { return blocks_max_; }

 private:
  explicit Kernels(SharedGpu gpu) : gpu_(std::move(gpu)) {}
  Result<void> prepare(DataType type);

  SharedGpu gpu_;
  Library library_ = nullptr;
  std::array<Function, data_type_count> functions_{};
  int blocks_max_ = 0;
};

}  // namespace tutti::cuda
