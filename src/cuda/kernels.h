// The kernels of one GPU. All are loaded before the first one runs: loading a kernel while others wait for each other
// would hang.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/resources.h"
#include "kernels/entries.h"

namespace tutti::cuda {

/// Returns the fatbin, cubin or PTX that contains an entry; empty if there is none. Called only while kernels are
/// loaded.
using ImageOf = std::function<std::span<const std::byte>(device::Body body, DataType type)>;

class Kernels {
 public:
  /// Loads the kernels of all bodies and types. Errors: cuda (no image, no code for this GPU, a missing entry).
  static Result<std::shared_ptr<const Kernels>> load(const SharedGpu& gpu, const ImageOf& image_of);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  /// Queues the kernel; the context must be current. `together`: its blocks wait for each other. Errors: cuda.
  Result<void> start(device::Body body, DataType type, device::Call& call, unsigned threads, Stream stream,
                     bool together = false) const;
  /// Number of blocks that the GPU holds at once, whichever kernel they run.
  int blocks_max() const { return blocks_max_; }

 private:
  explicit Kernels(SharedGpu gpu) : gpu_(std::move(gpu)) {}
  Result<Library> library(std::span<const std::byte> image);
  Result<void> prepare(device::Body body, DataType type, Library library);

  SharedGpu gpu_;
  std::vector<std::pair<const std::byte*, Library>> libraries_;  // by image
  std::array<std::array<Function, device_type_count>, std::size(device::bodies)> functions_{};
  int blocks_max_ = 0;
};

}  // namespace tutti::cuda
