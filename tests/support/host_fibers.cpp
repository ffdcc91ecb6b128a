// Kernels on fibers.
#include "support/host_bodies.h"

namespace tutti::testing {

bool run_on_fibers(const Launch& launch, FiberOptions options) {
  options.blocks = launch.blocks();
  std::vector<BodyShared> shared(static_cast<std::size_t>(options.blocks));
  FiberScheduler* scheduler = nullptr;
  FiberScheduler made(options, [&](int block, int thread) {
    FiberBlock<> b(*scheduler, thread, options.threads, block);
    perform(b, shared[static_cast<std::size_t>(block)], launch);
  });
  scheduler = &made;
  return made.run();
}

}  // namespace tutti::testing
