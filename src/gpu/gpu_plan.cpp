#include "gpu/gpu_plan.h"

#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {

std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, bool one_launch) {
  const Shape shape{.collective = request.collective, .ranks = communicator.ranks(), .root = request.root};
  GpuContext& context = *gpu_context(communicator);
  GpuChoice& chosen = context.choice(shape.collective, request.group_bytes());
  if (chosen.algorithm == nullptr)
    chosen = choose_on_gpu(shape, request.group_bytes(), communicator.plans().filter(shape.collective, Access::mapped),
                           one_launch && communicator.process().gpus.specialised, communicator.process().envelopes);
  communicator.note_used(chosen.algorithm->name.c_str(), one_launch ? "gpu" : "p2p");
  auto& plans = context.plans;
  const PlanKey key{
      .algorithm = chosen.algorithm, .collective = shape.collective, .access = chosen.access, .root = shape.root};
  if (const auto* const known = plans.find(key)) return *known;
  const Schedule schedule = chosen.algorithm->build(communicator.members().with_levels(shape));
  constexpr int slots = 2;  // unused: plans by windows have no slots
  return plans.insert(key, std::make_shared<GpuPlan>(
                               GpuPlan{.plan = fuse(lower(schedule, communicator.rank(), chosen.access), slots)}));
}

}  // namespace tutti
