#include "gpu/gpu_choice.h"

#include <algorithm>
#include <bit>

#include "algorithms/setting.h"
#include "cuda/engine.h"

namespace tutti {

static_assert(std::has_single_bit(cuda::Engine::one_shot_bytes_max));

bool goes_in_line(const Shape& shape, std::size_t bytes, std::string_view forced) {
  return bytes > 0 && bytes < cuda::Engine::one_shot_bytes_max && shape.ranks > 1 &&
         shape.collective == Collective::all_reduce &&
         AlgorithmFilter(forced, shape.collective).allows(member(algorithm::one_shot));
}

GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, std::string_view forced, bool specialised,
                        Envelopes& envelopes) {
  if (specialised && goes_in_line(shape, bytes, forced))
    return {.algorithm = &member(algorithm::one_shot), .access = Access::in_line};
  const auto envelope =
      envelopes.of(shape, Access::mapped, forced, Machine::of_gpu(), {.cores = shape.ranks, .channels = 1});
  const int groups = std::max(input_groups(shape.collective, shape.ranks, shape.root, shape.root), 1);
  return {.algorithm = &envelope->at(bytes * static_cast<std::size_t>(groups)), .access = Access::mapped};
}

}  // namespace tutti
