// Chooses the algorithm and the access of a call on device memory, and makes the plan on first use.
#include <algorithm>

#include "base/limits.h"
#include "choice/setting.h"
#include "comm/communicator.h"
#include "cuda/areas.h"
#include "gpu/gpu_context.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {
namespace {

/// With more ranks than a pass has sources the plan of one_shot is a chain of passes, for which there is no kernel.
bool goes_in_line(const Shape& shape, std::size_t bytes, bool apart, std::string_view forced) {
  return bytes > 0 && bytes < cuda::one_shot_bytes_max(shape.ranks, apart) && shape.ranks > 1 &&
         shape.ranks <= limits::sources_max && shape.collective == Collective::all_reduce &&
         AlgorithmFilter(forced, shape.collective).allows(member(algorithm::one_shot));
}

/// For a call with `bytes` in a group. The choice is the same for all sizes with the same highest bit, and for all
/// roots.
///
/// The chooser is that of calls on host memory, with the numbers of a GPU on which all peers' memory is equally fast.
/// Kernels that wait by flags use slots, others windows. Small all-reduces go through inboxes instead, unless run_plan,
/// which runs any plan, is to be the only kernel.
GpuChoice choose(Communicator& communicator, const Shape& shape, std::size_t bytes, Waiting waiting) {
  const auto forced = [&](Access access) { return communicator.plans().filter(shape.collective, access); };
  if (waiting != Waiting::by_host && communicator.process().gpus.settings.specialised &&
      goes_in_line(shape, bytes, waiting == Waiting::by_flags, forced(Access::mapped)))
    return {.algorithm = &member(algorithm::one_shot), .access = Access::in_line};
  const Access access = waiting == Waiting::by_flags ? Access::slots : Access::mapped;
  const auto envelope =
      communicator.process().choices.envelopes.of(shape, access, forced(access), Machine::of_gpu(),
                                                  {.cores = shape.ranks, .channels = 1, .slots = cuda::ring_slots});
  const int groups = std::max(input_groups(shape.collective, shape.ranks, shape.root, shape.root), 1);
  return {.algorithm = &envelope->at(bytes * static_cast<std::size_t>(groups)), .access = access};
}

}  // namespace

std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, Waiting waiting) {
  const Shape shape{.collective = request.collective, .ranks = communicator.ranks(), .root = request.root};
  GpuContext& context = *gpu_context(communicator);
  GpuChoice& chosen = context.plans.choice(shape.collective, request.group_bytes(), waiting);
  if (chosen.algorithm == nullptr) chosen = choose(communicator, shape, request.group_bytes(), waiting);
  auto& plans = context.plans.cache;
  const PlanKey key{
      .algorithm = chosen.algorithm, .collective = shape.collective, .access = chosen.access, .root = shape.root};
  if (const auto* const known = plans.find(key)) return *known;
  const Schedule schedule = chosen.algorithm->build(communicator.members().with_levels(shape));
  return plans.insert(key, std::make_shared<GpuPlan>(GpuPlan{
                               .algorithm = chosen.algorithm,
                               .plan = fuse(lower(schedule, communicator.rank(), chosen.access), cuda::ring_slots)}));
}

}  // namespace tutti
