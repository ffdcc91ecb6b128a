#include "cuda/kernels.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::cuda {

Result<std::shared_ptr<const Kernels>> Kernels::load(const SharedGpu& gpu, std::span<const std::byte> image) {
  auto current = Current::enter(*gpu);
  if (!current) return std::move(current).error();
  std::shared_ptr<Kernels> kernels(new Kernels(gpu));
  const Status status =
      gpu->api().library_load(&kernels->library_, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (auto loaded = gpu->check(status, "cuLibraryLoadData"); !loaded)
    return Error(loaded.error()).during(fmt::format("load the kernels for GPU {}", gpu->ordinal()));
  for (int type = 0; type < data_type_count; ++type)
    if (auto ready = kernels->prepare(static_cast<DataType>(type)); !ready) return ready.error();
  return std::shared_ptr<const Kernels>(std::move(kernels));
}

Result<void> Kernels::prepare(DataType type) {
  const char* const name = device::entry_name(device::Body::run_plan, type);
  const auto failed = [&](const Result<void>& result) {
    return Error(result.error()).during(fmt::format("load kernel {} for GPU {}", name, gpu_->ordinal()));
  };
  const Api& api = gpu_->api();
  Kernel kernel = nullptr;
  Function& function = functions_[static_cast<std::size_t>(type)];
  if (auto found = gpu_->check(api.library_kernel(&kernel, library_, name), "cuLibraryGetKernel"); !found)
    return failed(found);
  if (auto made = gpu_->check(api.kernel_function(&function, kernel), "cuKernelGetFunction"); !made)
    return failed(made);
  if (api.function_load != nullptr)
    if (auto loaded = gpu_->check(api.function_load(function), "cuFuncLoad"); !loaded) return failed(loaded);
  int blocks = 0;
  const Status asked = api.blocks_per_multiprocessor(&blocks, function, device::block_threads, 0);
  if (auto known = gpu_->check(asked, "cuOccupancyMaxActiveBlocksPerMultiprocessor"); !known) return failed(known);
  blocks *= gpu_->multiprocessors();
  blocks_max_ = blocks_max_ == 0 ? blocks : std::min(blocks_max_, blocks);
  return {};
}

Kernels::~Kernels() {
  if (library_ == nullptr) return;
  if (auto current = Current::enter(*gpu_)) (void)gpu_->api().library_unload(library_);
}

}  // namespace tutti::cuda
