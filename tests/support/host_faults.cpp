// Kernels with a breakage built in, of one type.
#include <algorithm>
#include <cstdlib>

#include "support/host_bodies.h"

namespace tutti::testing {
namespace {

template <device::Fault fault>
bool run_faulty(const Launch& launch, FiberOptions options) {
  options.blocks = launch.blocks();
  // Addresses that are taken too early must be some.
  std::vector<std::byte> anywhere(1 << 16);
  std::vector<BodyShared> shared(static_cast<std::size_t>(options.blocks));
  for (BodyShared& s : shared)
    for (device::Operands& o : s.run_plan.operands) {
      std::ranges::fill(o.sources, anywhere.data());
      std::ranges::fill(o.destinations, anywhere.data());
    }
  FiberScheduler* scheduler = nullptr;
  FiberScheduler made(options, [&](int block, int thread) {
    FiberBlock<fault> b(*scheduler, thread, options.threads, block);
    perform_as<std::int32_t>(b, shared[static_cast<std::size_t>(block)], launch.body, *launch.call, launch.rehearsal);
  });
  scheduler = &made;
  return made.run();
}

template <int... I>
bool run_one_of(device::Fault fault, const Launch& launch, const FiberOptions& options,
                std::integer_sequence<int, I...>) {
  bool ended = false;
  const bool known =
      ((static_cast<int>(fault) == I && (ended = run_faulty<static_cast<device::Fault>(I)>(launch, options), true)) ||
       ...);
  if (!known) std::abort();
  return ended;
}

}  // namespace

bool run_on_fibers(const Launch& launch, FiberOptions options, device::Fault fault) {
  return run_one_of(fault, launch, options, std::make_integer_sequence<int, device::fault_count>{});
}

}  // namespace tutti::testing
