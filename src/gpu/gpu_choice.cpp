#include "gpu/gpu_choice.h"

#include <bit>

#include "algorithms/select.h"
#include "algorithms/setting.h"
#include "cuda/engine.h"

namespace tutti {

static_assert(std::has_single_bit(cuda::Engine::one_shot_bytes_max));

GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, std::string_view forced, bool specialised) {
  const Algorithm& flagged = member(algorithm::one_shot);
  const bool small = bytes > 0 && bytes < cuda::Engine::one_shot_bytes_max;
  if (specialised && small && shape.ranks > 1 && shape.collective == Collective::all_reduce &&
      AlgorithmFilter(forced, shape.collective).allows(flagged))
    return {.algorithm = &flagged, .access = Access::in_line};
  return {.algorithm = select(shape, Access::mapped, bytes, forced), .access = Access::mapped};
}

}  // namespace tutti
