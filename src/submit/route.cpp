#include "submit/route.h"

#include "gpu/gpu_context.h"

namespace tutti {
namespace {

/// Without a buffer the kind of memory is unknown, and ranks may have meant different kinds.
bool moves_nothing(const RoutedCall& call, const RouteFacts& facts) {
  if (call.bytes > 0) return false;
  if (call.message) return facts.device.messages_by_kernels;
  return facts.some_gpu && call.form == Form::plain && call.collective != Collective::barrier;
}

Route route_on_device(const RoutedCall& call, const DeviceFacts& facts) {
  if (call.message) return {.path = facts.messages_by_kernels ? Path::synchronising : Path::staged};
  const bool plain = call.form == Form::plain;
  switch (facts.reach) {
    case DeviceReach::single_launch:  // which has plans alone
      if (plain) return {.path = Path::single_launch};
      break;
    case DeviceReach::synchronising:  // which exchange blocks of any sizes
      if (!plain && call.form != Form::counts) break;
      // The factors of a pre-multiplied sum are known to their ranks alone.
      return {.path = Path::synchronising,
              .offers_windows =
                  plain && facts.windows && call.bytes >= facts.window_bytes_min && call.op != ReduceOp::pre_mul_sum};
    case DeviceReach::released:
      if (plain && call.collective != Collective::barrier && call.bytes >= facts.released_bytes_min)
        return {.path = Path::released};
      break;
    case DeviceReach::none: break;
  }
  return {.path = Path::staged};
}

}  // namespace

RouteFacts route_facts(const Communicator& communicator) {
  const GpuContext* const context = gpu_context(communicator);
  return {.spans_hosts = communicator.members().spans_hosts(),
          .some_gpu = communicator.members().some_gpu,
          .device = context == nullptr ? DeviceFacts{} : context->facts};
}

Route route(const RoutedCall& call, bool on_device, const RouteFacts& facts) {
  if (moves_nothing(call, facts)) return {.path = Path::nothing};
  if (on_device) return route_on_device(call, facts.device);
  return {.path = facts.spans_hosts ? Path::across_hosts : Path::inside_host};
}

}  // namespace tutti
