#include "gpu/gpu_choice.h"

#include <bit>

#include "algorithms/setting.h"
#include "cuda/engine.h"

namespace tutti {
namespace {

static_assert(std::has_single_bit(cuda::Engine::one_shot_bytes_max));

/// A GPU as the model sees it, in round numbers of an H200 (docs/performance.md). All ranks' memory is equally fast,
/// whoever wrote it, so only the proportions matter: a flag costs as much as tens of kilobytes.
Machine gpu_machine() {
  Machine machine;
  machine.hop_us = 1.5;
  machine.message_us = 0.5;
  machine.pass_us = 0.5;
  for (Rates* rates : {&machine.read, &machine.write, &machine.far_read, &machine.far_write}) rates->gbps.fill(1000);
  // A pass reads or writes each block once, at the same speed; there is one kind of loop.
  for (auto& of_class : machine.loops.gbps)
    for (auto& at_footprint : of_class) at_footprint.fill(1000);
  return machine;
}

}  // namespace

GpuChoice choose_on_gpu(const Shape& shape, std::size_t bytes, std::string_view forced, bool specialised,
                        Envelopes& envelopes) {
  const Algorithm& flagged = member(algorithm::one_shot);
  const bool small = bytes > 0 && bytes < cuda::Engine::one_shot_bytes_max;
  if (specialised && small && shape.ranks > 1 && shape.collective == Collective::all_reduce &&
      AlgorithmFilter(forced, shape.collective).allows(flagged))
    return {.algorithm = &flagged, .access = Access::in_line};
  const auto envelope =
      envelopes.of(shape, Access::mapped, forced, gpu_machine(), {.cores = shape.ranks, .channels = 1});
  return {.algorithm = &envelope->at(bytes), .access = Access::mapped};
}

}  // namespace tutti
