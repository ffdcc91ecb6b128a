// A kernel body with an order left out, on real threads: ThreadSanitizer has to see it. Usage: races NAME
#include <string_view>

#include "algorithms/algorithm.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/kernel_world.h"
#include "support/thread_launch.h"

namespace tutti {
namespace {

using namespace testing;
using device::Fault;

template <Fault fault>
int run() {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 3};
  std::vector<Plan> plans = lower_all(find_algorithm("ring", shape)->build(shape), Access::slots);
  for (Plan& plan : plans) plan = fuse(std::move(plan), 2);
  KernelWorld world(plans, {.count = 150, .slot_bytes = 192, .calls = 4});
  const Launch launch = world.launch();
  with_threads<ThreadBlock<fault>>(launch, 2, [&](auto& b, BodyShared& s) {
    perform_as<std::int32_t>(b, s, launch.body, *launch.call, launch.rehearsal);
  });
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int count, char** arguments) {
  using tutti::device::Fault;
  const std::string_view fault = count == 2 ? arguments[1] : "";
  if (fault == "none") return tutti::run<Fault::none>();
  if (fault == "release_relaxed") return tutti::run<Fault::release_relaxed>();
  if (fault == "acquire_relaxed") return tutti::run<Fault::acquire_relaxed>();
  if (fault == "no_publish_barrier") return tutti::run<Fault::no_publish_barrier>();
  return 2;
}
