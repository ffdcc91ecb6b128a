#include "cuda/kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "kernels/image.h"

namespace tutti::cuda {

Result<std::shared_ptr<const Kernels>> Kernels::load(const SharedGpu& gpu, const ImageOf& image_of) {
  const auto current = TUTTI_TRY(Current::enter(*gpu));
  std::shared_ptr<Kernels> kernels(new Kernels(gpu));
  const HeldStdio held;  // for the driver's cache of kernels
  for (const device::Body body : device::bodies)
    for (int i = 0; i < device_type_count; ++i) {
      const auto type = static_cast<DataType>(i);
      auto library = TUTTI_TRY(kernels->library(image_of(body, type)));
      TUTTI_TRY(kernels->prepare(body, type, library));
    }
  return std::shared_ptr<const Kernels>(std::move(kernels));
}

Result<Library> Kernels::library(std::span<const std::byte> image) {
  if (image.empty())
    return Error{.code = Code::cuda,
                 .what =
                     "this build of tutti has no GPU kernels: pass host memory, or set TUTTI_CUDA_KERNELS to a file "
                     "with the kernels"};
  for (const auto& [known, library] : libraries_)
    if (known == image.data()) return library;
  Library library = nullptr;
  const Status status = gpu_->api().library_load(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (auto loaded = gpu_->check(status, "cuLibraryLoadData"); !loaded)
    return Error(loaded.error()).during(fmt::format("load the kernels for GPU {}", gpu_->ordinal()));
  libraries_.emplace_back(image.data(), library);
  return library;
}

Result<void> Kernels::prepare(device::Body body, DataType type, Library library) {
  const std::string name = device::entry_name(body, type);
  const auto check = [&](Status status, std::string_view function_called) -> Result<void> {
    auto done = gpu_->check(status, function_called);
    if (done) return done;
    return std::move(done).error().during(fmt::format("load kernel {} for GPU {}", name, gpu_->ordinal()));
  };
  const Api& api = gpu_->api();
  Kernel kernel = nullptr;
  Function& function = functions_[static_cast<std::size_t>(body)][static_cast<std::size_t>(type)];
  TUTTI_TRY(check(api.library_kernel(&kernel, library, name.c_str()), "cuLibraryGetKernel"));
  TUTTI_TRY(check(api.kernel_function(&function, kernel), "cuKernelGetFunction"));
  if (api.function_load != nullptr) TUTTI_TRY(check(api.function_load(function), "cuFuncLoad"));
  int blocks = 0;
  const Status asked = api.blocks_per_multiprocessor(&blocks, function, device::block_threads, 0);
  TUTTI_TRY(check(asked, "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  blocks *= gpu_->multiprocessors();
  blocks_max_ = blocks_max_ == 0 ? blocks : std::min(blocks_max_, blocks);
  return {};
}

/// Blocks that wait for others of their launch must all be on the GPU at once, which only a cooperative launch
/// guarantees: it begins when the GPU has room for all of them. The passes of a plan wait for nobody, and the blocks of
/// a single rank only for those of other launches, so their blocks begin one by one.
Result<void> Kernels::start(device::Body body, DataType type, device::Call& call, unsigned threads, Stream stream,
                            bool together) const {
  auto* const function = functions_[static_cast<std::size_t>(body)][static_cast<std::size_t>(type)];
  void* parameters[] = {&call};
  const unsigned blocks = call.local_ranks * call.channels;
  const Api& api = gpu_->api();
  if (!together)
    return gpu_->check(api.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr),
                       "cuLaunchKernel");
  return gpu_->check(api.launch_cooperative(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters),
                     "cuLaunchCooperativeKernel");
}

Kernels::~Kernels() {
  auto current = Current::enter(*gpu_);
  if (!current) return;
  for (const auto& [image, library] : libraries_) (void)gpu_->api().library_unload(library);
}

}  // namespace tutti::cuda
