// Kernels of sends and receives on fibers, whole or with a breakage built in.
#include <cstdlib>
#include <utility>

#include "kernels/messages.h"
#include "support/messages_world.h"

namespace tutti::testing {
namespace {

struct BlockShared {
  device::MessagesShared messages;
  device::HeldLinks links;
  device::Operands operands[2];
};

template <device::Fault fault>
bool run_as(std::span<const device::Call* const> calls, const FiberOptions& options) {
  struct Place {
    const device::Call* call;
    int first;
  };
  std::vector<Place> places;  // by block
  for (const device::Call* const call : calls)
    places.insert(places.end(), call->channels, {call, static_cast<int>(places.size())});
  FiberOptions all = options;
  all.blocks = static_cast<int>(places.size());
  std::vector<BlockShared> shared(places.size());
  FiberScheduler* scheduler = nullptr;
  FiberScheduler made(all, [&](int block, int thread) {
    const auto [call, first] = places[static_cast<std::size_t>(block)];
    BlockShared& s = shared[static_cast<std::size_t>(block)];
    FiberBlock<fault> b(*scheduler, thread, options.threads, block, first);
    device::Messages<FiberBlock<fault>>(b, s.messages, s.links, s.operands, *call, device::part_of(b, *call)).run();
  });
  scheduler = &made;
  return made.run();
}

template <int... I>
bool run_one_of(device::Fault fault, std::span<const device::Call* const> calls, const FiberOptions& options,
                std::integer_sequence<int, I...>) {
  bool ended = false;
  const bool known =
      ((static_cast<int>(fault) == I && (ended = run_as<static_cast<device::Fault>(I)>(calls, options), true)) || ...);
  if (!known) std::abort();
  return ended;
}

}  // namespace

bool run_messages_on_fibers(std::span<const device::Call* const> calls, const FiberOptions& options,
                            device::Fault fault) {
  return run_one_of(fault, calls, options, std::make_integer_sequence<int, device::fault_count>{});
}

}  // namespace tutti::testing
