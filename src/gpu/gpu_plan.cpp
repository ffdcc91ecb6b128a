// A rank's plans of calls on device memory: chosen and made on first use.
#include "comm/communicator.h"
#include "gpu/gpu_context.h"
#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {

std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, Waiting waiting) {
  const Shape shape{.collective = request.collective, .ranks = communicator.ranks(), .root = request.root};
  GpuContext& context = *gpu_context(communicator);
  GpuChoice& chosen = context.plans.choice(shape.collective, request.group_bytes(), waiting);
  if (chosen.algorithm == nullptr)
    chosen = choose_on_gpu(
        shape, request.group_bytes(),
        [&](Access access) { return communicator.plans().filter(shape.collective, access); },
        communicator.process().gpus.settings.specialised, waiting, communicator.process().choices.envelopes);
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
