#include "gpu/gpu_choice.h"

#include <algorithm>

#include "base/limits.h"
#include "choice/setting.h"
#include "cuda/engine.h"

namespace tutti {

namespace {

/// With more ranks than a pass has sources the plan of one_shot is a chain of passes, for which there is no kernel.
bool goes_in_line(const Shape& shape, std::size_t bytes, bool apart, std::string_view forced) {
  return bytes > 0 && bytes < cuda::one_shot_bytes_max(shape.ranks, apart) && shape.ranks > 1 &&
         shape.ranks <= limits::sources_max && shape.collective == Collective::all_reduce &&
         AlgorithmFilter(forced, shape.collective).allows(member(algorithm::one_shot));
}

}  // namespace

GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, const std::function<std::string(Access)>& forced,
                        bool specialised, Waiting waiting, Envelopes& envelopes) {
  if (waiting != Waiting::by_host && specialised &&
      goes_in_line(shape, bytes, waiting == Waiting::by_flags, forced(Access::mapped)))
    return {.algorithm = &member(algorithm::one_shot), .access = Access::in_line};
  const Access access = waiting == Waiting::by_flags ? Access::slots : Access::mapped;
  const auto envelope = envelopes.of(shape, access, forced(access), Machine::of_gpu(),
                                     {.cores = shape.ranks, .channels = 1, .slots = cuda::ring_slots});
  const int groups = std::max(input_groups(shape.collective, shape.ranks, shape.root, shape.root), 1);
  return {.algorithm = &envelope->at(bytes * static_cast<std::size_t>(groups)), .access = access};
}

}  // namespace tutti
