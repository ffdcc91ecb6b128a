#include "gpu/gpu_plan.h"

#include "plan/fuse.h"
#include "plan/lower.h"

namespace tutti {

std::shared_ptr<GpuPlan> plan_on_gpu(Communicator& communicator, const Request& request, bool meeting) {
  const Shape shape{.collective = request.collective, .ranks = communicator.ranks(), .root = request.root};
  GpuContext& context = *gpu_context(communicator);
  GpuChoice& chosen = context.choice(shape.collective, request.group_bytes());
  if (chosen.algorithm == nullptr)
    chosen = choose_on_gpu(shape, request.group_bytes(), communicator.filter(shape.collective, Access::mapped),
                           meeting && communicator.process().gpus.specialised);
  communicator.used = {.algorithm = chosen.algorithm->name.c_str(), .transport = meeting ? "gpu" : "p2p"};
  auto& plans = context.plans;
  const GpuContext::Key key{
      .algorithm = chosen.algorithm, .access = chosen.access, .collective = shape.collective, .root = shape.root};
  if (const auto* const known = plans.find(key)) return *known;
  const Schedule schedule = chosen.algorithm->build(communicator.with_levels(shape));
  constexpr int slots = 2;  // windows have none
  return plans.insert(key, std::make_shared<GpuPlan>(
                               GpuPlan{.plan = fuse(lower(schedule, communicator.rank(), chosen.access), slots)}));
}

}  // namespace tutti
